package pgidempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// fixture is a database with the records in it, reached in one exec mode.
type fixture struct {
	owner   string       // its DSN
	dsn     string       // of the runtime role
	db      *postgres.DB // as the owner, for what a test arranges; the others work as the runtime role
	runner  *tx.Runner
	records *pgidempotency.Records
}

var execModes = pgtest.ExecModes()

// through is the way from a test to its database: none, or a pooler in the end-to-end tests.
var through = func(_ *testing.T, dsn string) string { return dsn }

func newFixture(t *testing.T, mode string) *fixture {
	t.Helper()
	dsn := migrationstest.DSN(t, migrations.Idempotency())
	f := &fixture{owner: dsn, db: open(t, dsn, mode)}
	f.dsn = migrationstest.RuntimeDSN(t, dsn, migrations.Idempotency())
	runtime := open(t, through(t, f.dsn), mode)
	var err error
	f.runner, err = tx.NewRunner(runtime, nil)
	require.NoError(t, err)
	f.records = pgidempotency.New(runtime)
	return f
}

func open(t *testing.T, dsn, mode string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, ExecMode: mode}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.WithoutCancel(t.Context()))) })
	return db
}

var operations atomic.Int64

// request is for one scope; each call is another operation.
func request(owner string) idempotency.Request {
	return idempotency.Request{
		Scope: idempotency.Scope{1}, KeyVersion: "1", Tenant: "acme", Route: "POST /orders", Fingerprint: idempotency.Fingerprint{2},
		Owner: owner, Operation: fmt.Sprint("op-", operations.Add(1)), Lease: time.Hour, Expiry: 2 * time.Hour,
	}
}

func (f *fixture) claim(t *testing.T, r idempotency.Request) idempotency.Claim {
	t.Helper()
	rec, made, err := f.records.Claim(t.Context(), r)
	require.NoError(t, err)
	require.True(t, made)
	return rec.Claim
}

func (f *fixture) expire(t *testing.T) {
	t.Helper()
	_, err := f.db.Exec(t.Context(), `update caskeleton.idempotency_record
		set lease_expires_at = clock_timestamp() - interval '2 seconds', expires_at = clock_timestamp() - interval '1 second'`)
	require.NoError(t, err)
}

// waits returns once a session of this database waits for a lock.
func (f *fixture) waits(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		var waiting int
		err := f.db.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting == 1
	}, 30*time.Second, time.Millisecond)
}

func TestClaimIsMadeOnceAndReadAfterwards(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, mode)
			r := request("a")
			rec, made, err := f.records.Claim(t.Context(), r)
			require.NoError(t, err)
			require.True(t, made)
			want := idempotency.Record{
				Claim: idempotency.Claim{Scope: r.Scope, Owner: "a", Attempt: 1, Operation: r.Operation, Revision: 1},
				State: idempotency.Claimed, Fingerprint: r.Fingerprint,
			}
			require.Equal(t, want, rec)

			rec, made, err = f.records.Claim(t.Context(), request("b"))
			require.NoError(t, err)
			require.False(t, made)
			require.Equal(t, want, rec)

			f.expire(t)
			rec, _, err = f.records.Claim(t.Context(), request("b"))
			require.NoError(t, err)
			require.True(t, rec.LeaseExpired)
		})
	}
}

// TestAClaimThatWasBeatenIsReadAnew has the INSERT wait for another one that commits: the statement's snapshot is older than that row.
func TestAClaimThatWasBeatenIsReadAnew(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, mode)
			var rec idempotency.Record
			var made bool
			var err error
			var beaten sync.WaitGroup
			require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
				q, qerr := postgres.Querier(tr)
				require.NoError(t, qerr)
				_, qerr = q.Exec(ctx, `insert into caskeleton.idempotency_record (scope, key_version, route, fingerprint, state, owner, attempt,
					operation, revision, lease_expires_at, expires_at, created_at, updated_at)
					values ($1::bytea, '1', 'r', $1::bytea, 'CLAIMED', 'first', 1, 'op', 1, now() + interval '1 hour', now(), now(), now())`, bytes.Repeat([]byte{9}, 32))
				require.NoError(t, qerr)
				beaten.Go(func() {
					r := request("second")
					r.Scope = idempotency.Scope(bytes.Repeat([]byte{9}, 32))
					rec, made, err = f.records.Claim(t.Context(), r)
				})
				f.waits(t)
				return nil
			}))
			beaten.Wait()
			require.NoError(t, err)
			require.False(t, made)
			require.Equal(t, "first", rec.Owner)
		})
	}
}

// TestAClaimDoesNotWaitForACommit asks while the holder's COMMIT takes its time: here in a deferred trigger, elsewhere for a standby.
func TestAClaimDoesNotWaitForACommit(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, mode)
			for _, sql := range []string{
				`create function public.slow() returns trigger language plpgsql as 'begin perform pg_catalog.pg_advisory_xact_lock(1); return null; end'`,
				`create constraint trigger slow after update on caskeleton.idempotency_record deferrable initially deferred for each row execute function public.slow()`,
			} {
				_, err := f.db.Exec(t.Context(), sql)
				require.NoError(t, err)
			}
			c := f.claim(t, request("a"))
			committed := make(chan error, 1)
			require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, gate *tx.Tx) error {
				q, err := postgres.Querier(gate)
				require.NoError(t, err)
				_, err = q.Exec(ctx, `select pg_advisory_xact_lock(1)`)
				require.NoError(t, err)
				go func() {
					committed <- f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
						return errors.Join(f.records.Start(ctx, tr, c, nil), f.records.Complete(ctx, tr, c, idempotency.Answer{Payload: []byte("done")}))
					})
				}()
				f.waits(t)

				rec, made, err := f.records.Claim(t.Context(), request("b"))
				require.NoError(t, err, "it waited until the lock timeout")
				require.False(t, made)
				require.Equal(t, c, rec.Claim)
				return nil
			}))
			require.NoError(t, <-committed)
		})
	}
}

func TestTheAnswerIsThereWithTheEffectOrNotAtAll(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, mode)
			payload := []byte("\x00answer\xff")
			c := f.claim(t, request("a"))
			run := func(result error) error {
				return f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
					require.NoError(t, f.records.Start(ctx, tr, c, nil))
					require.NoError(t, f.records.Complete(ctx, tr, c, idempotency.Answer{Payload: payload}))
					return result
				})
			}
			require.ErrorIs(t, run(fault.Internal), fault.Internal)
			rec, _, err := f.records.Claim(t.Context(), request("b"))
			require.NoError(t, err)
			require.Equal(t, idempotency.Claimed, rec.State)
			require.Nil(t, rec.Payload)

			require.NoError(t, run(nil))
			rec, _, err = f.records.Claim(t.Context(), request("b"))
			require.NoError(t, err)
			require.Equal(t, idempotency.Completed, rec.State)
			require.Equal(t, payload, rec.Payload)
			require.Equal(t, int64(2), rec.Revision)
		})
	}
}

func TestAnEmptyAnswerIsAnAnswer(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, mode)
			require.NoError(t, f.records.Settle(t.Context(), f.claim(t, request("a")), idempotency.Claimed, idempotency.Failed, idempotency.Answer{Payload: []byte{}}))
			rec, _, err := f.records.Claim(t.Context(), request("b"))
			require.NoError(t, err)
			require.Equal(t, idempotency.Failed, rec.State)
			require.Equal(t, []byte{}, rec.Payload)
		})
	}
}

// TestAStaleOwnerChangesNothing takes each part of a claim away in turn.
func TestAStaleOwnerChangesNothing(t *testing.T) {
	f := newFixture(t, "")
	c := f.claim(t, request("a"))
	for part, spoil := range map[string]func(*idempotency.Claim){
		"scope":     func(c *idempotency.Claim) { c.Scope[0]++ },
		"owner":     func(c *idempotency.Claim) { c.Owner = "b" },
		"attempt":   func(c *idempotency.Claim) { c.Attempt++ },
		"operation": func(c *idempotency.Claim) { c.Operation = "op-x" },
		"revision":  func(c *idempotency.Claim) { c.Revision++ },
	} {
		stale := c
		spoil(&stale)
		f.refuses(t, part, stale)
		_, taken, err := f.records.TakeOver(t.Context(), stale, request("b"))
		require.NoError(t, err)
		require.False(t, taken, part)
	}
	rec, _, err := f.records.Claim(t.Context(), request("b"))
	require.NoError(t, err)
	require.Equal(t, c, rec.Claim)
	require.Equal(t, idempotency.Claimed, rec.State)

	for _, sql := range []string{ // and the state, whatever the rest says
		`update caskeleton.idempotency_record set state = 'EXECUTING', executing_since = now()`,
		`update caskeleton.idempotency_record set state = 'COMPLETED', executing_since = null, payload = 'x'`,
	} {
		_, err := f.db.Exec(t.Context(), sql)
		require.NoError(t, err)
		f.refuses(t, sql, c)
		_, taken, err := f.records.TakeOver(t.Context(), c, request("b"))
		require.NoError(t, err)
		require.False(t, taken, sql)
	}
}

func (f *fixture) refuses(t *testing.T, what string, c idempotency.Claim) {
	t.Helper()
	require.ErrorIs(t, f.records.Settle(t.Context(), c, idempotency.Claimed, idempotency.Failed, idempotency.Answer{Payload: []byte("x")}), idempotency.ErrStale, what)
	require.ErrorIs(t, f.records.Settle(t.Context(), c, idempotency.Claimed, "", idempotency.Answer{}), idempotency.ErrStale, what)
	require.ErrorIs(t, f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		return f.records.Start(ctx, tr, c, nil)
	}), idempotency.ErrStale, what)
	require.ErrorIs(t, f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		return f.records.Complete(ctx, tr, c, idempotency.Answer{Payload: []byte("x")})
	}), idempotency.ErrStale, what)
}

func TestTakeOver(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, mode)
			c := f.claim(t, request("a"))
			_, taken, err := f.records.TakeOver(t.Context(), c, request("b"))
			require.NoError(t, err)
			require.False(t, taken, "the lease has not expired")

			f.expire(t)
			r := request("b")
			now, taken, err := f.records.TakeOver(t.Context(), c, r)
			require.NoError(t, err)
			require.True(t, taken)
			require.Equal(t, idempotency.Claim{Scope: c.Scope, Owner: "b", Attempt: 2, Operation: r.Operation, Revision: 2}, now)
			f.refuses(t, "the former owner", c)

			rec, _, err := f.records.Claim(t.Context(), request("c"))
			require.NoError(t, err)
			require.Equal(t, now, rec.Claim)
			require.False(t, rec.LeaseExpired, "a take-over has a lease of its own")
			var kept bool
			require.NoError(t, f.db.QueryRow(t.Context(), `select expires_at > clock_timestamp() + interval '1 hour' from caskeleton.idempotency_record`).Scan(&kept))
			require.True(t, kept, "and its answer is kept as long as any")
			require.NoError(t, f.records.Settle(t.Context(), now, idempotency.Claimed, "", idempotency.Answer{}))
		})
	}
}

// TestNobodyWaitsForARunningTransaction: with lock_timeout on, a statement that waited would fail.
func TestNobodyWaitsForARunningTransaction(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, mode)
			c := f.claim(t, request("a"))
			f.expire(t)
			require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
				require.NoError(t, f.records.Start(ctx, tr, c, nil)) // the holder is alive, whatever its lease says
				rec, made, err := f.records.Claim(t.Context(), request("b"))
				require.NoError(t, err)
				require.False(t, made)
				require.Equal(t, c, rec.Claim)
				_, taken, err := f.records.TakeOver(t.Context(), c, request("b"))
				require.NoError(t, err)
				require.False(t, taken)
				return f.records.Complete(ctx, tr, c, idempotency.Answer{Payload: []byte("done")})
			}))
			rec, _, err := f.records.Claim(t.Context(), request("b"))
			require.NoError(t, err)
			require.Equal(t, []byte("done"), rec.Payload)
		})
	}
}

// TestEachScopeHasOneOwnerAtATime lets many owners claim, run, crash and take over one scope, and reads the history of what committed.
func TestEachScopeHasOneOwnerAtATime(t *testing.T) {
	f := newFixture(t, "")
	_, err := f.db.Exec(t.Context(), `create table public.effect (operation text not null); grant insert on public.effect to public`)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("1", bytes.Repeat([]byte("k"), 32))
	require.NoError(t, err)
	const owners, operationsEach, scopes = 8, 60, 12
	var runs, answers atomic.Int64
	var tried sync.Map // of keys: the first run of each crashes, whatever the schedule
	var wg sync.WaitGroup
	for n := range owners {
		g, err := idempotency.New(f.records, f.runner, keys, &idempotency.Options{Lease: time.Millisecond, Owner: fmt.Sprint("owner-", n)})
		require.NoError(t, err)
		wg.Go(func() {
			for i := range operationsEach {
				key := idempotency.Key{Method: "POST", Route: "/x", Client: fmt.Sprint("key-", i%scopes)}
				out, err := idempotency.Do(t.Context(), g, key, idempotency.Fingerprint{}, func(ctx context.Context, tr *tx.Tx) (string, error) {
					runs.Add(1)
					q, err := postgres.Querier(tr)
					if err != nil {
						return "", err
					}
					if _, err := q.Exec(ctx, `insert into public.effect (operation) values ($1)`, key.Client); err != nil {
						return "", err
					}
					if _, again := tried.LoadOrStore(key.Client, true); !again || (n+i)%5 == 0 { // a crash, as the database sees it
						var dead bool
						return "", q.QueryRow(ctx, `select pg_terminate_backend(pg_backend_pid())`).Scan(&dead)
					}
					return key.Client, nil
				})
				if err == nil {
					answers.Add(1)
					if out.Value != key.Client {
						t.Errorf("answer %q for %q", out.Value, key.Client)
					}
				}
			}
		})
	}
	wg.Wait()
	require.Greater(t, runs.Load(), int64(scopes), "no operation ever ran again, so nothing was tried here")
	require.Greater(t, answers.Load(), int64(scopes))

	var effects, distinct, completed int
	require.NoError(t, f.db.QueryRow(t.Context(), `select count(*), count(distinct operation) from public.effect`).Scan(&effects, &distinct))
	require.NoError(t, f.db.QueryRow(t.Context(), `select count(*) from caskeleton.idempotency_record where state = 'COMPLETED'`).Scan(&completed))
	require.Equal(t, distinct, effects, "an operation took effect twice")
	require.Equal(t, completed, effects, "an effect without its answer, or an answer without its effect")
}
