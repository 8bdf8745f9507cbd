package idempotency_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

var large = strings.Repeat("x", 20_000)

func TestALargeAnswerIsReplayedWhole(t *testing.T) {
	for name, o := range map[string]*objects{"beside the records": nil, "in a response store": {kept: map[idempotency.Ref][]byte{}}} {
		t.Run(name, func(t *testing.T) {
			w := newWhole(t, idempotency.Options{})
			if o != nil {
				w.Guard = w.guard(t, idempotency.Options{Responses: o})
			}
			other := key
			other.Client = "external"
			rejected := key
			rejected.Client = "rejected"
			for _, replayed := range []bool{false, true} {
				out, err := idempotency.Do(t.Context(), w.Guard, key, fp, answer(new(int), large))
				require.NoError(t, err)
				require.Equal(t, idempotency.Outcome[string]{Value: large, Replayed: replayed}, out)
				out, err = idempotency.Do(t.Context(), w.Guard, rejected, fp, func(context.Context, *tx.Tx) (string, error) { return large, idempotency.ErrRejected })
				require.NoError(t, err)
				require.Equal(t, idempotency.Outcome[string]{Value: large, Replayed: replayed, Rejected: true}, out)
				out, err = idempotency.DoExternal(t.Context(), w.Guard, other, fp, gives(new(int), large, nil))
				require.NoError(t, err)
				require.Equal(t, idempotency.Outcome[string]{Value: large, Replayed: replayed}, out)
			}
			if o == nil {
				return
			}
			require.Len(t, o.kept, 3)
			for ref := range o.kept {
				scope, operation, err := ref.Split()
				require.NoError(t, err)
				e, err := w.ShowScope(t.Context(), scope)
				require.NoError(t, err)
				require.Equal(t, e.Operation, operation)
			}
		})
	}
}

func TestAnAnswerThatTheResponseStoreDoesNotTake(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	w.objects.err = errBoom
	w.Guard = w.guard(t, idempotency.Options{Responses: w.objects})
	runs := 0
	for range 2 {
		_, err := idempotency.Do(t.Context(), w.Guard, key, fp, answer(&runs, large))
		require.ErrorIs(t, err, errBoom)
	}
	require.Equal(t, 2, runs, "nothing took effect")
	external := key
	external.Client = "external"
	_, err := idempotency.DoExternal(t.Context(), w.Guard, external, fp, gives(new(int), large, nil))
	require.ErrorIs(t, err, fault.IdempotencyAbandoned)
	require.ErrorIs(t, err, errBoom)
	e, err := w.Show(t.Context(), external)
	require.NoError(t, err)
	require.Equal(t, idempotency.Abandoned, e.State)
}

func TestAnAnswerThatIsGoneIsNotRunAgain(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	with := w.guard(t, idempotency.Options{Responses: w.objects})
	runs := 0
	_, err := idempotency.Do(t.Context(), with, key, fp, answer(&runs, large))
	require.NoError(t, err)
	_, err = idempotency.Do(t.Context(), w.Guard, key, fp, answer(&runs, large))
	require.ErrorContains(t, err, "Options.Responses is not set")
	clear(w.objects.kept)
	_, err = idempotency.Do(t.Context(), with, key, fp, answer(&runs, large))
	require.ErrorContains(t, err, "cannot be read")
	require.Equal(t, 1, runs)
}

func TestOrphansAreReaped(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	g := w.guard(t, idempotency.Options{Responses: w.objects})
	r, err := idempotency.NewReaper(g, &idempotency.ReaperOptions{Batch: 2})
	require.NoError(t, err)
	pass := func(ctx context.Context, want int) {
		done, err := r.Pass(ctx)
		require.NoError(t, err)
		require.Equal(t, want, done.Orphans)
	}
	_, err = idempotency.Do(t.Context(), g, key, fp, answer(new(int), large))
	require.NoError(t, err)
	for _, foreign := range []idempotency.Ref{"README", "a/b/c"} {
		w.objects.kept[foreign] = nil
	}
	for n := range 5 {
		c := idempotency.Claim{Scope: idempotency.Scope{byte(n)}}
		w.objects.kept[idempotency.Ref(c.Scope.String()+"/gone/x")] = []byte("x")
	}
	pass(t.Context(), 5)
	require.Len(t, w.objects.kept, 3, "an answer, and what is not ours")
	w.ahead += 25 * time.Hour
	pass(t.Context(), 1)
	require.Len(t, w.objects.kept, 2)
}

func TestAnObjectOfAnOpenTransactionIsNoOrphan(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	g := w.guard(t, idempotency.Options{Responses: reaping{w.objects, func(ctx context.Context) {
		w.ahead += 25 * time.Hour // however long it takes
		reaper, err := idempotency.NewReaper(w.guard(t, idempotency.Options{Responses: w.objects}), nil)
		require.NoError(t, err)
		done, err := reaper.Pass(ctx)
		require.NoError(t, err)
		require.Equal(t, idempotency.Reaped{}, done)
	}}})
	for _, replayed := range []bool{false, true} {
		out, err := idempotency.Do(t.Context(), g, key, fp, answer(new(int), large))
		require.NoError(t, err)
		require.Equal(t, idempotency.Outcome[string]{Value: large, Replayed: replayed}, out)
	}
}

// reaping is a response store whose orphans are reaped after each put.
type reaping struct {
	*objects

	reap func(ctx context.Context)
}

func (r reaping) Put(ctx context.Context, ref idempotency.Ref, object []byte) error {
	defer r.reap(ctx)
	return r.objects.Put(ctx, ref, object)
}
