package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/testkit/meter"
	"caskeleton.dev/tx"
)

// whole is a guard on a driver that keeps all promises, with a clock and an object store.
type whole struct {
	*idempotency.Guard

	driver  *memory.Records
	objects *objects
	ahead   time.Duration
}

func newWhole(t *testing.T, o idempotency.Options) *whole {
	t.Helper()
	w := &whole{objects: &objects{kept: map[idempotency.Ref][]byte{}}}
	w.driver = memory.NewRecords(&memory.RecordsOptions{Now: func() time.Time { return time.Now().Add(w.ahead) }})
	w.Guard = w.guard(t, o)
	return w
}

// guard returns one on the same records; the first of the versions is its current one.
func (w *whole) guard(t *testing.T, o idempotency.Options, versions ...string) *idempotency.Guard {
	t.Helper()
	if len(versions) == 0 {
		versions = []string{"1"}
	}
	return guardOn(t, w.driver, o, versions...)
}

func guardOn(t *testing.T, d idempotency.Driver, o idempotency.Options, versions ...string) *idempotency.Guard {
	t.Helper()
	runner, err := tx.NewRunner(memory.Transactions{}, nil)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring(versions[0], bytes.Repeat([]byte(versions[0]), 32))
	require.NoError(t, err)
	for _, v := range versions[1:] {
		keys, err = keys.Accept(v, bytes.Repeat([]byte(v), 32))
		require.NoError(t, err)
	}
	o.Logger = slog.New(slog.DiscardHandler)
	g, err := idempotency.New(d, runner, keys, &o)
	require.NoError(t, err)
	return g
}

// objects is a response store.
type objects struct {
	kept map[idempotency.Ref][]byte
	err  error
}

func (o *objects) Put(_ context.Context, ref idempotency.Ref, object []byte) error {
	if o.err == nil {
		o.kept[ref] = bytes.Clone(object)
	}
	return o.err
}

func (o *objects) Get(_ context.Context, ref idempotency.Ref) ([]byte, error) {
	if object, ok := o.kept[ref]; ok {
		return object, o.err
	}
	return nil, errors.New("no such object")
}

func (o *objects) Delete(_ context.Context, ref idempotency.Ref) error {
	delete(o.kept, ref)
	return o.err
}

func (o *objects) List(_ context.Context, after idempotency.Ref, limit int) (refs []idempotency.Ref, err error) {
	for ref := range o.kept {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	for len(refs) > 0 && refs[0] <= after {
		refs = refs[1:]
	}
	return refs[:min(limit, len(refs))], o.err
}

// interrupted leaves an ABANDONED record of a client key.
func (w *whole) interrupted(t *testing.T, client string) idempotency.Entry {
	t.Helper()
	k := key
	k.Client = client
	_, err := idempotency.DoExternal(t.Context(), w.Guard, k, fp, gives(new(int), "", errBoom))
	require.ErrorIs(t, err, errBoom)
	e, err := w.Show(t.Context(), k)
	require.NoError(t, err)
	require.Equal(t, idempotency.Abandoned, e.State)
	return e
}

func TestWhatAnOperatorSettles(t *testing.T) {
	for name, c := range map[string]struct {
		settlement idempotency.Settlement
		want       idempotency.Outcome[string]
	}{
		"it took effect":    {idempotency.CompletedWith("paid"), idempotency.Outcome[string]{Value: "paid", Replayed: true}},
		"it was refused":    {idempotency.RejectedWith("declined"), idempotency.Outcome[string]{Value: "declined", Replayed: true, Rejected: true}},
		"it had no effect":  {idempotency.NoEffect(), idempotency.Outcome[string]{Value: "again"}},
		"its answer is big": {idempotency.CompletedWith(strings.Repeat("x", 9000)), idempotency.Outcome[string]{Value: strings.Repeat("x", 9000), Replayed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWhole(t, idempotency.Options{})
			e := w.interrupted(t, "abc")
			stale := e.Claim
			stale.Revision--
			require.ErrorIs(t, w.Reconcile(t.Context(), stale, c.settlement), idempotency.ErrStale)
			require.NoError(t, w.Reconcile(t.Context(), e.Claim, c.settlement))
			require.ErrorIs(t, w.Reconcile(t.Context(), e.Claim, c.settlement), idempotency.ErrStale, "once")
			out, err := idempotency.DoExternal(t.Context(), w.Guard, key, fp, gives(new(int), "again", nil))
			require.NoError(t, err)
			require.Equal(t, c.want, out)
		})
	}
}

func TestSettlementsThatAreRefused(t *testing.T) {
	w := newWhole(t, idempotency.Options{AnswerLimit: 10 << 10})
	e := w.interrupted(t, "abc")
	require.ErrorContains(t, w.Reconcile(t.Context(), e.Claim, idempotency.Settlement{}), "empty")
	require.ErrorContains(t, w.Reconcile(t.Context(), e.Claim, idempotency.CompletedWith(func() {})), "cannot be stored")
	require.ErrorIs(t, w.Reconcile(t.Context(), e.Claim, idempotency.CompletedWith(strings.Repeat("x", 11<<10))), idempotency.ErrAnswerTooLarge)
	now, err := w.ShowScope(t.Context(), e.Scope)
	require.NoError(t, err)
	require.Equal(t, e, now)
}

func TestWhatOperatorsSee(t *testing.T) {
	w := newWhole(t, idempotency.Options{Owner: "node"})
	_, err := w.Show(t.Context(), key)
	require.ErrorIs(t, err, idempotency.ErrNoRecord)
	_, err = w.Show(t.Context(), idempotency.Key{})
	require.ErrorIs(t, err, fault.IdempotencyKeyRequired)
	_, err = w.ShowScope(t.Context(), idempotency.Scope{})
	require.ErrorIs(t, err, idempotency.ErrNoRecord)

	e := w.interrupted(t, "abc")
	require.Equal(t, []any{"node", "POST /orders", "1"}, []any{e.Owner, e.Route, e.KeyVersion})
	other := w.interrupted(t, "other")
	first, err := w.List(t.Context(), idempotency.Abandoned, idempotency.Cursor{}, 1)
	require.NoError(t, err)
	rest, err := w.List(t.Context(), idempotency.Abandoned, first[0].Cursor(), 10)
	require.NoError(t, err)
	require.Equal(t, []idempotency.Entry{e, other}, append(first, rest...))

	scope, err := idempotency.ParseScope(e.Scope.String())
	require.NoError(t, err)
	require.Equal(t, e.Scope, scope)
	for _, bad := range []string{"", "x", e.Scope.String()[2:], e.Scope.String() + "00"} {
		_, err := idempotency.ParseScope(bad)
		require.ErrorContains(t, err, "64 hexadecimal digits")
	}
}

func TestAPassOfTheReaper(t *testing.T) {
	m := meter.New("outcome")
	w := newWhole(t, idempotency.Options{Meter: m})
	asked := map[idempotency.Scope]int{}
	var settlement idempotency.Settlement
	r, err := idempotency.NewReaper(w.Guard, &idempotency.ReaperOptions{Batch: 2, Reconciler: func(_ context.Context, e idempotency.Entry) (idempotency.Settlement, error) {
		if asked[e.Scope]++; asked[e.Scope] == 1 && len(asked) == 2 {
			return idempotency.Settlement{}, errBoom
		}
		return settlement, nil
	}})
	require.NoError(t, err)
	for n := range 5 {
		k := key
		k.Client = fmt.Sprint("done-", n)
		_, err := idempotency.Do(t.Context(), w.Guard, k, fp, answer(new(int), "x"))
		require.NoError(t, err)
		w.interrupted(t, fmt.Sprint("lost-", n))
	}
	done, err := r.Pass(t.Context())
	require.ErrorIs(t, err, errBoom, "and yet the others are asked about")
	require.Equal(t, idempotency.Reaped{}, done)
	require.Len(t, asked, 5)

	settlement = idempotency.CompletedWith("found out")
	done, err = r.Pass(t.Context())
	require.NoError(t, err)
	require.Equal(t, idempotency.Reaped{Settled: 5}, done)
	w.ahead += 24 * time.Hour
	done, err = r.Pass(t.Context())
	require.NoError(t, err)
	require.Equal(t, idempotency.Reaped{Deleted: 10}, done)
	require.Equal(t, 10, m.Get("idempotency.reaped"))
	require.Equal(t, 5, m.Get("idempotency.abandoned"))
}

func TestThePassFindsCrashedExecutions(t *testing.T) {
	m := meter.New("outcome")
	w := newWhole(t, idempotency.Options{Meter: m})
	r, err := idempotency.NewReaper(w.Guard, nil)
	require.NoError(t, err)
	_, err = idempotency.DoExternal(t.Context(), w.Guard, key, fp, func(ctx context.Context, _ *idempotency.Execution) (string, error) {
		w.ahead += time.Minute
		done, err := r.Pass(ctx)
		require.NoError(t, err)
		require.Equal(t, idempotency.Reaped{Abandoned: 1}, done)
		return "late", nil
	})
	require.ErrorIs(t, err, fault.IdempotencyAbandoned)
	require.ErrorIs(t, err, idempotency.ErrStale)
	require.Equal(t, 1, m.Get("idempotency.abandoned"), "once, whoever finds it")
}

// A route with a longer expiry is in the way of the reaper, which goes on where it stopped.
func TestTheReaperPausesWhereThereIsNothingToDelete(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	r, err := idempotency.NewReaper(w.Guard, &idempotency.ReaperOptions{Batch: 2})
	require.NoError(t, err)
	long := w.With(idempotency.CallOptions{Expiry: 1000 * time.Hour})
	for n := range 31 {
		k := key
		k.Client = fmt.Sprint(n)
		g := long
		if n == 30 {
			g = w.Guard
		}
		_, err := idempotency.Do(t.Context(), g, k, fp, answer(new(int), "x"))
		require.NoError(t, err)
	}
	w.ahead += 24 * time.Hour
	for _, want := range []int{0, 1, 0} { // 20 records at a time, then the rest and the beginning
		done, err := r.Pass(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, done.Deleted)
	}
}

func TestReaperRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWhole(t, idempotency.Options{})
		passes := 0
		r, err := idempotency.NewReaper(w.Guard, &idempotency.ReaperOptions{Interval: time.Minute, Reconciler: func(context.Context, idempotency.Entry) (idempotency.Settlement, error) {
			passes++
			return idempotency.Settlement{}, errBoom // does not end it
		}})
		require.NoError(t, err)
		w.interrupted(t, "abc")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		require.NoError(t, r.Run(ctx))
		require.GreaterOrEqual(t, passes, 9)
		require.LessOrEqual(t, passes, 11)
	})
}

func TestNewReaperRefusesWhatCannotWork(t *testing.T) {
	_, err := idempotency.NewReaper(nil, nil)
	require.ErrorContains(t, err, "guard")
	w := newWhole(t, idempotency.Options{})
	_, err = idempotency.NewReaper(w.Guard, &idempotency.ReaperOptions{Interval: -1})
	require.ErrorContains(t, err, "Interval")
	for _, n := range []int{-1, 10_001} {
		_, err = idempotency.NewReaper(w.Guard, &idempotency.ReaperOptions{Batch: n})
		require.ErrorContains(t, err, "Batch")
	}
}
