package pglock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/locktest"
)

// harness has two nodes a store, with pools of two connections, on one database. back, if any, is given a third one, which the test itself uses.
func harness(t *testing.T, mode, isolation string, back *node) locktest.Harness {
	t.Helper()
	cfg := postgres.Config{DSN: migrationstest.DSN(t, migrations.Lock()), ExecMode: mode, MaxConns: 2}
	isolate(t, cfg.DSN, isolation)
	return locktest.Harness{New: func(t *testing.T) locktest.Store {
		t.Helper()
		n, other := newNode(t, cfg), newNode(t, cfg)
		own := newNode(t, postgres.Config{DSN: cfg.DSN, MaxConns: 2, ApplicationName: "back"})
		if back != nil {
			*back = *own
		}
		return locktest.Apart(locktest.Store{Driver: n.locks, Other: other.locks, Expire: func(ctx context.Context, k lock.Key) error {
			digest := k.Digest()
			for {
				if _, err := own.db.Exec(ctx, expireSQL, digest[:]); !errors.Is(err, fault.DBSerializationFailure) {
					return err
				}
			}
		}}, rand.Text())
	}}
}

func TestConformance(t *testing.T) {
	for _, mode := range execModes {
		isolation := defaultIsolation(mode)
		t.Run(mode+"/"+isolation, func(t *testing.T) { locktest.TestDriver(t, harness(t, mode, isolation, nil)) })
	}
}

// TestConformanceAsTheRuntimeRole: the grants of `migrate grants` are enough for all that locks do.
func TestConformanceAsTheRuntimeRole(t *testing.T) {
	locktest.TestDriver(t, locktest.Harness{New: func(t *testing.T) locktest.Store {
		t.Helper()
		owner := newNode(t, postgres.Config{MaxConns: 2})
		cfg := postgres.Config{DSN: migrationstest.RuntimeDSN(t, owner.dsn, migrations.Lock()), MaxConns: 2}
		n, other := newNode(t, cfg), newNode(t, cfg)
		return locktest.Store{Driver: n.locks, Other: other.locks, Expire: func(ctx context.Context, k lock.Key) error {
			digest := k.Digest()
			_, err := owner.db.Exec(ctx, expireSQL, digest[:])
			return err
		}}
	}})
}

func TestHistory(t *testing.T) {
	for mode, isolation := range map[string]string{"cache_statement": "read committed", "simple_protocol": "serializable"} {
		t.Run(mode, func(t *testing.T) {
			locktest.TestHistory(t, harness(t, mode, isolation, nil), &locktest.HistoryOptions{Workers: 8, Rounds: 60, Keys: 3})
		})
	}
}

// TestHistoryUnderFaults ends the sessions of both nodes again and again, in whatever they are doing, or keeps everybody from the table for
// longer than a lease.
func TestHistoryUnderFaults(t *testing.T) {
	for name, sql := range map[string]string{
		"cut": `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid() and application_name <> 'back' and random() < 0.3`,
		"pause": `do $$ begin lock table caskeleton.lock_lease in access exclusive mode; perform pg_sleep(0.1); end $$`,
	} {
		t.Run(name, func(t *testing.T) {
			var back node
			locktest.TestHistory(t, harness(t, "cache_statement", "read committed", &back), &locktest.HistoryOptions{
				Workers: 8, Rounds: 40, Keys: 3, Fault: func(ctx context.Context) {
					_, _ = back.db.Exec(ctx, sql) // it ends with the play
					select {
					case <-time.After(30 * time.Millisecond):
					case <-ctx.Done():
					}
				},
			})
		})
	}
}
