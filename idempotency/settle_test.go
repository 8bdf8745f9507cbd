package idempotency_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// remark is what rides in the transaction of an operator's change: it counts runs, and commits.
type remark struct {
	runs, commits int
	err           error
}

func (n *remark) also(_ context.Context, t *tx.Tx) error {
	n.runs++
	if err := t.AfterCommit(func(context.Context) error {
		n.commits++
		return nil
	}); err != nil {
		return err
	}
	return n.err
}

func TestWhatIsSettledAndWhatIsSaidOfItAreOne(t *testing.T) {
	for name, s := range map[string]idempotency.Settlement{
		"took effect": idempotency.CompletedWith("paid"), "refused": idempotency.RejectedWith("declined"), "no effect": idempotency.NoEffect(),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWhole(t, idempotency.Options{})
			e := w.interrupted(t, "abc")

			n := &remark{err: errBoom}
			require.ErrorIs(t, w.ReconcileWith(t.Context(), e.Claim, s, n.also), errBoom)
			require.Equal(t, remark{runs: 1, err: errBoom}, *n)
			now, err := w.ShowScope(t.Context(), e.Scope)
			require.NoError(t, err)
			require.Equal(t, e, now, "nothing has changed")

			n = &remark{}
			require.NoError(t, w.ReconcileWith(t.Context(), e.Claim, s, n.also))
			require.Equal(t, remark{runs: 1, commits: 1}, *n)
			require.ErrorIs(t, w.ReconcileWith(t.Context(), e.Claim, s, n.also), idempotency.ErrStale, "once")
			require.ErrorIs(t, w.Reconcile(t.Context(), e.Claim, s), idempotency.ErrStale)
			require.Equal(t, remark{runs: 1, commits: 1}, *n, "nothing is said of what did not happen")
		})
	}
}

func TestARefusedSettlementBeginsNothing(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	e := w.interrupted(t, "abc")
	n := &remark{}
	require.ErrorContains(t, w.ReconcileWith(t.Context(), e.Claim, idempotency.Settlement{}, n.also), "empty")
	require.Zero(t, *n)
}

// quiet is a response store that must not be waited for with a transaction open.
type quiet struct {
	*objects

	open bool
}

func (q *quiet) Put(ctx context.Context, ref idempotency.Ref, object []byte) error {
	_, q.open = tx.FromContext(ctx)
	return q.objects.Put(ctx, ref, object)
}

func TestALargeAnswerIsStoredBeforeTheTransaction(t *testing.T) {
	q := &quiet{objects: &objects{kept: map[idempotency.Ref][]byte{}}}
	w := newWhole(t, idempotency.Options{Responses: q})
	e := w.interrupted(t, "abc")
	answer := strings.Repeat("x", 9000)
	n := &remark{}
	require.NoError(t, w.ReconcileWith(t.Context(), e.Claim, idempotency.CompletedWith(answer), n.also))
	require.Len(t, q.kept, 1)
	require.False(t, q.open)
	out, err := idempotency.DoExternal(t.Context(), w.Guard, key, fp, gives(new(int), "again", nil))
	require.NoError(t, err)
	require.Equal(t, answer, out.Value)
}

// What an operator does is never a part of something that may be rolled back behind it.
func TestAnOperatorsChangeStandsAlone(t *testing.T) {
	runner, err := tx.NewRunner(memory.Transactions{}, nil)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("1", bytes.Repeat([]byte("1"), 32))
	require.NoError(t, err)
	g, err := idempotency.New(memory.NewRecords(nil), runner, keys, nil)
	require.NoError(t, err)
	n := &remark{}
	require.ErrorIs(t, runner.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		require.ErrorIs(t, g.ReconcileWith(ctx, idempotency.Claim{}, idempotency.NoEffect(), n.also), fault.TXNestedRoot)
		_, err := g.Retire(ctx, "1", n.also)
		return err
	}), fault.TXNestedRoot)
	require.Zero(t, *n)
}

func TestRetirementAndWhatIsSaidOfItAreOne(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	require.NoError(t, w.Enroll(t.Context()))
	e := w.interrupted(t, "abc")
	n := &remark{}
	retire := func(version string, want bool) {
		done, err := w.Retire(t.Context(), version, n.also)
		require.NoError(t, err)
		require.Equal(t, want, done)
	}
	retire("1", false)
	retire("2", false)
	require.Zero(t, *n, "nothing is said of what did not happen")
	require.NoError(t, w.Reconcile(t.Context(), e.Claim, idempotency.NoEffect()))

	n.err = errBoom
	done, err := w.Retire(t.Context(), "1", n.also)
	require.ErrorIs(t, err, errBoom)
	require.False(t, done)
	require.ErrorIs(t, w.guard(t, idempotency.Options{}, "2").Enroll(t.Context()), idempotency.ErrOtherSecret, "it is still known")

	*n = remark{}
	retire("1", true)
	require.Equal(t, remark{runs: 1, commits: 1}, *n)
	require.NoError(t, w.guard(t, idempotency.Options{}, "2").Enroll(t.Context()))
}

func TestScopes(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	e := w.interrupted(t, "abc")
	k := key
	k.Client = "abc"
	scopes, err := w.guard(t, idempotency.Options{}, "2", "1").Scopes(k)
	require.NoError(t, err)
	require.Len(t, scopes, 2)
	require.Equal(t, e.Scope, scopes[1])
	_, err = w.Scopes(idempotency.Key{})
	require.ErrorIs(t, err, fault.IdempotencyKeyRequired)
}

func TestCursorsAreReadAsTheyAreWritten(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	for _, c := range []idempotency.Cursor{{}, w.interrupted(t, "abc").Cursor(), {Created: time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.FixedZone("", 3600)), Scope: idempotency.Scope{31: 0xff}}} {
		got, err := idempotency.ParseCursor(c.String())
		require.NoError(t, err)
		require.True(t, c.Created.Equal(got.Created))
		require.Equal(t, c.Scope, got.Scope)
		require.Equal(t, c.String(), got.String())
		require.NotContains(t, c.String(), " ")
	}
	scope := idempotency.Scope{}.String()
	for _, bad := range []string{"", "_", "2026-01-02T03:04:05Z", scope, "2026-01-02_" + scope, "2026-01-02T03:04:05Z_" + scope[1:], "2026-01-02T03:04:05Z_" + scope + "00", "2026-01-02T03:04:05Z " + scope} {
		_, err := idempotency.ParseCursor(bad)
		require.Error(t, err, bad)
	}
}
