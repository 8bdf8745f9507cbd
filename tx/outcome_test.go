package tx_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// look is what a driver answers to one Resolve.
type look struct {
	outcome tx.Outcome
	err     error
}

// forgetful is a driver whose COMMITs get no answer, and which tells afterwards, look by look, what became of them. The last one stays.
type forgetful struct {
	recorder

	looks []look
	ctx   func(context.Context)
}

func (f *forgetful) Begin(ctx context.Context, o tx.BeginOptions) (tx.Conn, error) {
	c, err := f.recorder.Begin(ctx, o)
	return forgetfulConn{c, f}, err
}

type forgetfulConn struct {
	tx.Conn
	driver *forgetful
}

func (c forgetfulConn) Resolve(ctx context.Context) (tx.Outcome, error) {
	c.driver.calls = append(c.driver.calls, "resolve")
	if c.driver.ctx != nil {
		c.driver.ctx(ctx)
	}
	l := c.driver.looks[0]
	if len(c.driver.looks) > 1 {
		c.driver.looks = c.driver.looks[1:]
	}
	return l.outcome, l.err
}

var errCut = errors.New("the connection was cut")

func newForgetful(t *testing.T, o *tx.RunnerOptions, looks ...look) (*tx.Runner, *forgetful) {
	t.Helper()
	f := &forgetful{looks: looks}
	f.fail = map[string]error{"commit": fault.New(fault.DBCommitUnknown, "driver.Commit", errCut)}
	o.Logger = slog.New(slog.DiscardHandler)
	r, err := tx.NewRunner(f, o)
	require.NoError(t, err)
	return r, f
}

func TestALostCommitIsLookedUp(t *testing.T) {
	again := look{tx.Unknown, fault.DBUnavailable}
	for name, c := range map[string]struct {
		looks []look
		want  error
		asked int
	}{
		"committed":                     {[]look{{tx.Committed, nil}}, nil, 1},
		"not committed":                 {[]look{{tx.NotCommitted, nil}}, fault.DBUnavailable, 1},
		"nothing to tell by":            {[]look{{tx.Unknown, nil}}, fault.DBCommitUnknown, 1},
		"committed, at the third look":  {[]look{again, again, {tx.Committed, nil}}, nil, 3},
		"not committed, at the second":  {[]look{again, {tx.NotCommitted, nil}}, fault.DBUnavailable, 2},
		"nothing to tell by, at second": {[]look{again, {tx.Unknown, nil}}, fault.DBCommitUnknown, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, d := newForgetful(t, &tx.RunnerOptions{}, c.looks...)
				v, err := tx.Value(t.Context(), r.InWrite, func(_ context.Context, w *tx.Tx) (int, error) {
					return 7, w.AfterCommit(note(&d.calls, "hook"))
				})
				calls := []string{"begin", "commit"}
				for range c.asked {
					calls = append(calls, "resolve")
				}
				if c.want == nil {
					require.NoError(t, err)
					require.Equal(t, 7, v)
					calls = append(calls, "hook")
				} else {
					require.ErrorIs(t, err, c.want)
					require.ErrorIs(t, err, errCut, "the log has to say why")
					require.Zero(t, v)
				}
				require.Equal(t, errors.Is(c.want, fault.DBCommitUnknown), errors.Is(err, fault.DBCommitUnknown))
				require.Equal(t, errors.Is(c.want, fault.DBUnavailable), fault.Retryable(err))
				require.Equal(t, calls, d.calls)
			})
		})
	}
}

func TestLookingUpIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		o    tx.RunnerOptions
		want time.Duration
	}{
		"by default": {tx.RunnerOptions{}, 15 * time.Second},
		"as set":     {tx.RunnerOptions{ResolveTimeout: 3 * time.Second}, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, d := newForgetful(t, &c.o, look{tx.Unknown, fault.DBLockTimeout})
				ctx, cancel := context.WithCancel(t.Context())
				d.ctx = func(ctx context.Context) { require.NoError(t, ctx.Err(), "the caller's end reached it") }
				start := time.Now()
				err := r.InWrite(ctx, func(_ context.Context, w *tx.Tx) error {
					cancel()
					return w.AfterCommit(note(&d.calls, "hook"))
				})
				require.ErrorIs(t, err, fault.DBCommitUnknown)
				require.Equal(t, c.want, time.Since(start))
				require.NotContains(t, d.calls, "hook")
				require.Less(t, len(d.calls), 50, "it waits between looks")
			})
		})
	}
}

func TestOnlyALostCommitIsLookedUp(t *testing.T) {
	r, d := newForgetful(t, &tx.RunnerOptions{}, look{tx.Committed, nil})
	for _, end := range []error{nil, fault.DBUniqueViolation, fault.DBUnavailable} {
		d.fail["commit"] = end
		require.ErrorIs(t, r.InWrite(t.Context(), ok), end)
	}
	d.fail["rollback"] = fault.DBCommitUnknown // ended by SQL of fn's, before COMMIT was ever sent
	require.ErrorIs(t, r.InWrite(t.Context(), boom), fault.DBCommitUnknown)
	require.NotContains(t, d.calls, "resolve")
}
