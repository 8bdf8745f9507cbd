package idempotency_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

func TestWhatWasRecordedUnderAnotherVersionIsFound(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	_, err := idempotency.Do(t.Context(), w.guard(t, idempotency.Options{}, "1"), key, fp, answer(new(int), "first"))
	require.NoError(t, err)
	for name, g := range map[string]*idempotency.Guard{
		"the version before":  w.guard(t, idempotency.Options{}, "2", "1"),
		"one of many":         w.guard(t, idempotency.Options{}, "3", "2", "1"),
		"one that will claim": w.guard(t, idempotency.Options{}, "1", "2"),
	} {
		out, err := idempotency.Do(t.Context(), g, key, fp, answer(new(int), name))
		require.NoError(t, err)
		require.Equal(t, idempotency.Outcome[string]{Value: "first", Replayed: true}, out, name)
		e, err := g.Show(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, "1", e.KeyVersion)
	}
	out, err := idempotency.Do(t.Context(), w.guard(t, idempotency.Options{}, "2"), key, fp, answer(new(int), "second"))
	require.NoError(t, err)
	require.False(t, out.Replayed, "who does not know the version runs it, which is what Enroll is for")
}

func TestAClaimIsMadeUnderTheCurrentVersion(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	g := w.guard(t, idempotency.Options{}, "2", "1")
	_, err := idempotency.Do(t.Context(), g, key, fp, answer(new(int), "x"))
	require.NoError(t, err)
	e, err := w.guard(t, idempotency.Options{}, "2").Show(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, "2", e.KeyVersion)
}

func TestAClaimOfAnotherVersionIsTakenOver(t *testing.T) {
	for name, run := range map[string]func(g *idempotency.Guard) error{
		"transactional": func(g *idempotency.Guard) error {
			_, err := idempotency.Do(t.Context(), g, key, fp, answer(new(int), "x"))
			return err
		},
		"external": func(g *idempotency.Guard) error {
			_, err := idempotency.DoExternal(t.Context(), g, key, fp, gives(new(int), "x", nil))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWhole(t, idempotency.Options{})
			_, err := idempotency.Do(t.Context(), w.guard(t, idempotency.Options{}, "1"), key, fp, func(context.Context, *tx.Tx) (string, error) {
				return "", fault.DBCommitUnknown // leaves the claim
			})
			require.ErrorIs(t, err, fault.DBCommitUnknown)
			g := w.guard(t, idempotency.Options{}, "2", "1")
			require.ErrorIs(t, run(g), fault.IdempotencyInProgress)
			w.ahead += time.Minute
			require.NoError(t, run(g))
			e, err := g.Show(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, []any{"1", idempotency.Completed, int32(2)}, []any{e.KeyVersion, e.State, e.Attempt})
		})
	}
}

// early is a driver on which a claim does not see that of the other version, which is being made at the same time.
type early struct{ idempotency.Driver }

func (e early) Claim(ctx context.Context, r idempotency.Request) (idempotency.Record, bool, error) {
	r.Former = nil
	return e.Driver.Claim(ctx, r)
}

func TestTwoThatClaimUnderTheirVersionsAtOnceDoNotBothRun(t *testing.T) {
	for name, run := range map[string]func(g *idempotency.Guard, runs *int) error{
		"transactional": func(g *idempotency.Guard, runs *int) error {
			_, err := idempotency.Do(t.Context(), g, key, fp, answer(runs, "x"))
			return err
		},
		"external": func(g *idempotency.Guard, runs *int) error {
			_, err := idempotency.DoExternal(t.Context(), g, key, fp, gives(runs, "x", nil))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, runs := newWhole(t, idempotency.Options{}), 0
			first := w.guard(t, idempotency.Options{}, "1", "2")
			second := guardOn(t, early{w.driver}, idempotency.Options{}, "2", "1")
			_, err := idempotency.Do(t.Context(), first, key, fp, func(context.Context, *tx.Tx) (string, error) {
				require.ErrorIs(t, run(second, &runs), fault.IdempotencyInProgress)
				require.Zero(t, runs)
				return "first", nil
			})
			require.NoError(t, err)
			require.ErrorIs(t, run(second, &runs), fault.IdempotencyInProgress, "it still does not see the other")
			_, err = idempotency.Do(t.Context(), first, key, fp, answer(&runs, "again"))
			require.NoError(t, err)
			require.Zero(t, runs)
			_, err = w.guard(t, idempotency.Options{}, "2").Show(t.Context(), key)
			require.ErrorIs(t, err, idempotency.ErrNoRecord, "it gave its own claim back")
		})
	}
}

func TestRotation(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	enroll := func(versions ...string) error {
		return w.guard(t, idempotency.Options{}, versions...).Enroll(t.Context())
	}
	require.NoError(t, enroll("1"))
	require.ErrorIs(t, enroll("2", "1"), idempotency.ErrOtherSecret, "others do not know it yet")
	require.NoError(t, enroll("1", "2"))
	require.ErrorIs(t, enroll("1"), idempotency.ErrOtherSecret, "others will claim by it")
	require.NoError(t, enroll("2", "1"))
	_, err := idempotency.Do(t.Context(), w.guard(t, idempotency.Options{}, "1", "2"), key, fp, answer(new(int), "x"))
	require.NoError(t, err)

	g := w.guard(t, idempotency.Options{}, "2", "1")
	done, err := g.Retire(t.Context(), "1", nil)
	require.NoError(t, err)
	require.False(t, done)
	w.ahead += 24 * time.Hour
	r, err := idempotency.NewReaper(g, nil)
	require.NoError(t, err)
	_, err = r.Pass(t.Context())
	require.NoError(t, err)
	done, err = g.Retire(t.Context(), "1", nil)
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, enroll("2"))
}

func TestAcceptRefusesWhatCannotWork(t *testing.T) {
	keys, err := idempotency.NewKeyring("1", secret)
	require.NoError(t, err)
	_, err = keys.Accept("1", secret)
	require.ErrorContains(t, err, "twice")
	_, err = keys.Accept("", secret)
	require.ErrorContains(t, err, "version is empty")
	more, err := keys.Accept("2", secret)
	require.NoError(t, err)
	_, err = more.Accept("2", bytes.Repeat([]byte("o"), 32))
	require.ErrorContains(t, err, "twice")
	_, err = keys.Accept("2", secret)
	require.NoError(t, err, "a keyring does not change")
}

func TestCallOptions(t *testing.T) {
	w := newWhole(t, idempotency.Options{Owner: "node"})
	g := w.With(idempotency.CallOptions{Lease: time.Hour, Expiry: 100 * time.Hour})
	require.NoError(t, g.Validate())
	require.Equal(t, 100*time.Hour, g.Expiry())
	_, err := idempotency.DoExternal(t.Context(), g, key, fp, func(ctx context.Context, _ *idempotency.Execution) (string, error) {
		e, err := g.Show(ctx, key)
		require.NoError(t, err)
		require.Equal(t, 100*time.Hour, e.Expiry.Sub(e.Created))
		require.Equal(t, time.Hour, e.Lease.Sub(e.Updated))
		return "x", nil
	})
	require.NoError(t, err)
	require.Equal(t, 24*time.Hour, w.Expiry(), "a guard does not change")
	require.Equal(t, 100*time.Hour, g.With(idempotency.CallOptions{Lease: time.Minute}).Expiry())

	for field, o := range map[string]idempotency.CallOptions{"Lease": {Lease: -1}, "shorter than Lease": {Expiry: time.Second}, "Expiry": {Expiry: -1}} {
		g := w.With(o)
		require.ErrorContains(t, g.Validate(), field)
		other := key
		other.Client = field[:5]
		_, err := idempotency.Do(t.Context(), g, other, fp, answer(new(int), "x"))
		require.ErrorContains(t, err, field)
		_, err = idempotency.DoExternal(t.Context(), g, other, fp, gives(new(int), "x", nil))
		require.ErrorContains(t, err, field)
		_, err = w.Show(t.Context(), other)
		require.ErrorIs(t, err, idempotency.ErrNoRecord)
	}
}
