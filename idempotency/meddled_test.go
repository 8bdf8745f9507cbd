package idempotency_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/testkit/meter"
)

// meddled is a driver on which something happens when an answer is to be stored the first time, which fails; and whose Expire and Claim may
// fail.
type meddled struct {
	idempotency.Driver

	meddle   func(ctx context.Context, c idempotency.Claim)
	unwell   error // of Expire
	unclaims error
}

func (m *meddled) Settle(ctx context.Context, c idempotency.Claim, from, to idempotency.State, a idempotency.Answer) error {
	if meddle := m.meddle; meddle != nil && from == idempotency.Executing && to == idempotency.Completed {
		m.meddle = nil
		meddle(ctx, c)
		return fault.New(fault.DBUnavailable, "test", nil)
	}
	return m.Driver.Settle(ctx, c, from, to, a)
}

func (m *meddled) Expire(ctx context.Context, limit int) (int, error) {
	if m.unwell != nil {
		return 0, m.unwell
	}
	return m.Driver.Expire(ctx, limit)
}

func (m *meddled) Claim(ctx context.Context, r idempotency.Request) (idempotency.Record, bool, error) {
	if m.unclaims != nil {
		return idempotency.Record{}, false, m.unclaims
	}
	return m.Driver.Claim(ctx, r)
}

// An answer that was not stored, while the record got one from elsewhere, is not the operation's: repeats are told the other.
func TestAnAnswerThatOthersHaveGivenIsNotTakenForOnesOwn(t *testing.T) {
	for name, others := range map[string]func(t *testing.T, g *idempotency.Guard, ctx context.Context, c idempotency.Claim){
		"an operator": func(t *testing.T, g *idempotency.Guard, ctx context.Context, c idempotency.Claim) {
			t.Helper()
			c.Revision++
			require.NoError(t, g.Reconcile(ctx, c, idempotency.CompletedWith("theirs")))
		},
		"an operation after it": func(t *testing.T, g *idempotency.Guard, ctx context.Context, c idempotency.Claim) {
			t.Helper()
			c.Revision++
			require.NoError(t, g.Reconcile(ctx, c, idempotency.NoEffect()))
			_, err := idempotency.DoExternal(ctx, g, key, fp, gives(new(int), "theirs", nil))
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWhole(t, idempotency.Options{})
			d := &meddled{Driver: w.driver}
			d.meddle = func(ctx context.Context, c idempotency.Claim) {
				w.ahead += time.Minute
				marked, err := w.driver.Abandon(ctx, c)
				require.NoError(t, err)
				require.True(t, marked)
				others(t, w.Guard, ctx, c)
			}
			_, err := idempotency.DoExternal(t.Context(), guardOn(t, d, idempotency.Options{}, "1"), key, fp, gives(new(int), "mine", nil))
			require.ErrorIs(t, err, fault.IdempotencyAbandoned)
			out, err := idempotency.DoExternal(t.Context(), w.Guard, key, fp, gives(new(int), "again", nil))
			require.NoError(t, err)
			require.Equal(t, idempotency.Outcome[string]{Value: "theirs", Replayed: true}, out)
		})
	}
}

func TestWhatHasNoAnswerHasNoneToRead(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	_, err := idempotency.DoExternal(t.Context(), w.Guard, key, fp, func(ctx context.Context, _ *idempotency.Execution) (string, error) {
		e, err := w.Show(ctx, key)
		require.NoError(t, err)
		_, err = w.Answer(ctx, e.Scope)
		require.ErrorIs(t, err, idempotency.ErrNoRecord)
		return "x", nil
	})
	require.NoError(t, err)
	e, err := w.Show(t.Context(), key)
	require.NoError(t, err)
	payload, err := w.Answer(t.Context(), e.Scope)
	require.NoError(t, err)
	require.Equal(t, `"x"`, string(payload))
}

func TestAClaimThatFailsIsCountedAsAnError(t *testing.T) {
	w, m := newWhole(t, idempotency.Options{}), meter.New("outcome")
	d := &meddled{Driver: w.driver, unclaims: fault.New(fault.DBUnavailable, "test", nil)}
	_, err := idempotency.Do(t.Context(), guardOn(t, d, idempotency.Options{Meter: m}, "1"), key, fp, answer(new(int), "x"))
	require.ErrorIs(t, err, fault.DBUnavailable)
	require.Equal(t, map[string]float64{"idempotency.claim error": 1}, m.Sums())
}

// More executions were interrupted than one statement looks at; and a step that fails is no reason to leave out the others.
func TestAPassGoesOnWhateverFails(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	d := &meddled{Driver: w.driver, unwell: errBoom}
	r, err := idempotency.NewReaper(guardOn(t, d, idempotency.Options{}, "1"), &idempotency.ReaperOptions{Batch: 2})
	require.NoError(t, err)
	_, err = idempotency.Do(t.Context(), w.Guard, key, fp, answer(new(int), "x"))
	require.NoError(t, err)
	for n := range 5 {
		c := idempotency.Request{Scope: idempotency.Scope{byte(n)}, Owner: "dead", Operation: "x", Lease: time.Minute, Expiry: time.Hour}
		rec, _, err := w.driver.Claim(t.Context(), c)
		require.NoError(t, err)
		_, err = w.driver.Execute(t.Context(), rec.Claim, time.Minute, nil)
		require.NoError(t, err)
	}
	w.ahead += 25 * time.Hour
	done, err := r.Pass(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, idempotency.Reaped{Deleted: 1}, done)
	d.unwell = nil
	done, err = r.Pass(t.Context())
	require.NoError(t, err)
	require.Equal(t, idempotency.Reaped{Abandoned: 5}, done)
}
