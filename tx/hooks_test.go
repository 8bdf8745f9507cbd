package tx_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// note returns a hook that appends name to log.
func note(log *[]string, name string) func(context.Context) error {
	return func(context.Context) error {
		*log = append(*log, name)
		return nil
	}
}

func TestHooksRunInOrderAfterTheCommit(t *testing.T) {
	r, d := newRunner(t)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, r.InWrite(ctx, func(ctx context.Context, tr *tx.Tx) error {
		require.NoError(t, tr.AfterCommit(note(&d.calls, "first")))
		require.NoError(t, r.InWrite(ctx, func(_ context.Context, joined *tx.Tx) error {
			return joined.AfterCommit(func(ctx context.Context) error {
				require.NoError(t, ctx.Err(), "the caller's cancellation reached a hook")
				_, bounded := ctx.Deadline()
				require.True(t, bounded)
				require.Zero(t, d.open, "a hook ran while a connection was held")
				return r.InWrite(ctx, ok) // a transaction of its own
			})
		}))
		require.NoError(t, tr.AfterCommit(note(&d.calls, "third")))
		cancel()
		return nil
	}))
	require.Equal(t, []string{"begin", "commit", "first", "begin", "commit", "third"}, d.calls)
}

func TestHooksOfWhatDidNotCommitAreDropped(t *testing.T) {
	for name, c := range map[string]struct {
		fn  func(context.Context, *tx.Tx) error
		err error
	}{
		"rollback":       {boom, nil},
		"commit refused": {ok, fault.DBUniqueViolation},
		"commit unknown": {ok, fault.DBCommitUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newRunner(t)
			d.fail["commit"] = c.err
			require.Error(t, r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
				require.NoError(t, tr.AfterCommit(note(&d.calls, "hook")))
				return c.fn(ctx, tr)
			}))
			require.NotContains(t, d.calls, "hook")
		})
	}
}

func TestAFailedHookIsReportedAndChangesNothing(t *testing.T) {
	d := &recorder{}
	var log bytes.Buffer
	r, err := tx.NewRunner(d, &tx.RunnerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NoError(t, r.InWrite(t.Context(), func(_ context.Context, tr *tx.Tx) error {
		require.NoError(t, tr.AfterCommit(func(context.Context) error { return fault.Textf("job %d: %w", 7, errBoom) }))
		require.NoError(t, tr.AfterCommit(func(context.Context) error { panic("at the disco") }))
		require.NoError(t, tr.AfterCommit(func(context.Context) error { runtime.Goexit(); return nil }))
		return tr.AfterCommit(note(&d.calls, "last"))
	}))
	require.Equal(t, []string{"begin", "commit", "last"}, d.calls)
	require.Contains(t, log.String(), "job 7: *errors.errorString")
	require.NotContains(t, log.String(), "boom", "as may an error's text")
	require.Contains(t, log.String(), "panic of type string")
	require.NotContains(t, log.String(), "at the disco", "it may hold what nobody may log")
	require.Contains(t, log.String(), "the hook ended its goroutine")
}

// A hook runs after the end: what it registers would run never, or in a transaction that is not its own.
func TestAHookRegistersNoHook(t *testing.T) {
	r, d := newRunner(t)
	require.NoError(t, r.InWrite(t.Context(), func(_ context.Context, w *tx.Tx) error {
		return w.AfterCommit(func(ctx context.Context) error {
			require.ErrorIs(t, w.AfterCommit(note(&d.calls, "late")), tx.ErrDone)
			require.ErrorIs(t, w.Savepoint(ctx, func(context.Context) error { return nil }), tx.ErrDone)
			return r.InWrite(ctx, func(_ context.Context, own *tx.Tx) error { return own.AfterCommit(note(&d.calls, "its own")) })
		})
	}))
	require.Equal(t, []string{"begin", "commit", "begin", "commit", "its own"}, d.calls)
}

func TestHooksOfInNewDoNotSeeTheOuterTransaction(t *testing.T) {
	r, d := newRunner(t)
	require.NoError(t, r.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		return r.InNew(ctx, func(_ context.Context, inner *tx.Tx) error {
			return inner.AfterCommit(func(ctx context.Context) error { return r.InRootWrite(ctx, ok) })
		})
	}))
	require.Equal(t, []string{"begin", "begin", "commit", "begin", "commit", "commit"}, d.calls)
}

func TestSavepoints(t *testing.T) {
	t.Run("a failed one is undone, drops its hooks and dooms nothing", func(t *testing.T) {
		r, d := newRunner(t)
		require.NoError(t, r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
			require.NoError(t, tr.AfterCommit(note(&d.calls, "before")))
			require.ErrorIs(t, tr.Savepoint(ctx, func(ctx context.Context) error {
				require.NoError(t, tr.AfterCommit(note(&d.calls, "inside")))
				return r.InWrite(ctx, boom)
			}), errBoom)
			return tr.AfterCommit(note(&d.calls, "after"))
		}))
		require.Equal(t, []string{"begin", "savepoint s1", "rollback to s1", "commit", "before", "after"}, d.calls)
	})
	t.Run("a kept one keeps its hooks, and nests", func(t *testing.T) {
		r, d := newRunner(t)
		require.NoError(t, r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
			return tr.Savepoint(ctx, func(ctx context.Context) error {
				require.NoError(t, tr.AfterCommit(note(&d.calls, "kept")))
				require.ErrorIs(t, tr.Savepoint(ctx, func(context.Context) error {
					require.NoError(t, tr.AfterCommit(note(&d.calls, "dropped")))
					return errBoom
				}), errBoom)
				return nil
			})
		}))
		require.Equal(t, []string{"begin", "savepoint s1", "savepoint s2", "rollback to s2", "release s1", "commit", "kept"}, d.calls)
	})
	t.Run("one that swallows a joined failure is undone", func(t *testing.T) {
		r, d := newRunner(t)
		require.NoError(t, r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
			require.ErrorIs(t, tr.Savepoint(ctx, func(ctx context.Context) error {
				_ = r.InWrite(ctx, boom)
				return nil
			}), tx.ErrRollbackOnly)
			return nil
		}))
		require.Equal(t, []string{"begin", "savepoint s1", "rollback to s1", "commit"}, d.calls)
	})
	t.Run("one that cannot be undone dooms the transaction", func(t *testing.T) {
		r, d := newRunner(t)
		d.fail["rollback to s1"] = fault.DBUnavailable
		require.ErrorIs(t, r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
			_ = tr.Savepoint(ctx, func(context.Context) error { return errBoom })
			return nil
		}), tx.ErrRollbackOnly)
		require.Equal(t, []string{"begin", "savepoint s1", "rollback to s1", "rollback"}, d.calls)
	})
	t.Run("a recovered panic in one dooms the transaction", func(t *testing.T) {
		r, d := newRunner(t)
		require.ErrorIs(t, r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
			defer func() { _ = recover() }()
			return tr.Savepoint(ctx, func(context.Context) error { panic("at the disco") })
		}), tx.ErrRollbackOnly)
		require.Equal(t, []string{"begin", "savepoint s1", "rollback"}, d.calls)
	})
}

func TestReadOnlyEndsWithItsScope(t *testing.T) {
	r, _ := newRunner(t)
	require.NoError(t, r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		require.NoError(t, r.InReadOnly(ctx, func(ctx context.Context, tr *tx.Tx) error {
			require.True(t, tr.ReadOnly())
			require.ErrorIs(t, r.InWrite(ctx, ok), tx.ErrReadOnly)
			return nil
		}))
		require.False(t, tr.ReadOnly())
		return r.InWrite(ctx, ok)
	}))
}
