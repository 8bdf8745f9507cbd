package pgidempotency_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// laden is the records of a server that takes 20 ms for a claim.
type laden struct {
	idempotency.Driver

	db     *postgres.DB
	claims atomic.Int64
}

func (l *laden) Claim(ctx context.Context, r idempotency.Request) (idempotency.Record, bool, error) {
	l.claims.Add(1)
	if _, err := l.db.Exec(ctx, `select pg_sleep(0.02)`); err != nil {
		return idempotency.Record{}, false, err
	}
	return l.Driver.Claim(ctx, r)
}

// effect is what the one does that runs: by the connection of its transaction, or by any, where q is nil.
type effect func(ctx context.Context, q postgres.DBTX) error

func transactional(ctx context.Context, g *idempotency.Guard, fp idempotency.Fingerprint, do effect) error {
	_, err := idempotency.Do(ctx, g, key("one"), fp, func(ctx context.Context, tr *tx.Tx) (int, error) {
		q, err := postgres.Querier(tr)
		if err != nil {
			return 0, err
		}
		return 1, do(ctx, q)
	})
	return err
}

func external(ctx context.Context, g *idempotency.Guard, fp idempotency.Fingerprint, do effect) error {
	_, err := idempotency.DoExternal(ctx, g, key("one"), fp, func(ctx context.Context, _ *idempotency.Execution) (int, error) { return 1, do(ctx, nil) })
	return err
}

// TestTenThousandWithOneKey by a pool of 4, and 5 s to wait for a connection: one runs, and has the connections that it needs, although all others
// come before it is done. A claim of each would take the pool ten times as long as anybody waits for a connection.
func TestTenThousandWithOneKey(t *testing.T) {
	const callers, conns = 10_000, 4
	for name, do := range map[string]func(context.Context, *idempotency.Guard, idempotency.Fingerprint, effect) error{
		"transactional": transactional, "external": external,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			_, err := f.db.Exec(t.Context(), `create table public.effect (n int); grant insert on public.effect to public`)
			require.NoError(t, err)
			db, err := postgres.Open(t.Context(), postgres.Config{DSN: f.dsn, MaxConns: conns, IdleTxTimeout: 5 * time.Minute}, nil)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close(context.WithoutCancel(t.Context()))) })
			runner, err := tx.NewRunner(db, nil)
			require.NoError(t, err)
			keys, err := idempotency.NewKeyring("1", bytes.Repeat([]byte("k"), 32))
			require.NoError(t, err)
			records := &laden{Driver: pgidempotency.New(db), db: db}
			g, err := idempotency.New(records, runner, keys, nil)
			require.NoError(t, err)

			var runs, done, running, reused atomic.Int64
			var others, all sync.WaitGroup
			others.Add(callers - 1)
			run := func(ctx context.Context, q postgres.DBTX) error {
				runs.Add(1)
				others.Wait()
				if q == nil {
					q = db
				}
				_, err := q.Exec(ctx, `insert into public.effect select count(*) from pg_stat_activity where datname = current_database() and usename = current_user`)
				return err
			}
			for i := range callers {
				all.Go(func() {
					err := do(t.Context(), g, idempotency.Fingerprint{byte(i % 2)}, run)
					switch {
					case err == nil:
						done.Add(1)
						return
					case errors.Is(err, fault.IdempotencyInProgress):
						running.Add(1)
					case errors.Is(err, fault.IdempotencyKeyReused):
						reused.Add(1)
					default:
						t.Error(err)
					}
					others.Done()
				})
			}
			all.Wait()
			require.Equal(t, []int64{1, 1, callers/2 - 1, callers / 2}, []int64{runs.Load(), done.Load(), running.Load(), reused.Load()})
			var effects, sessions int
			require.NoError(t, f.db.QueryRow(t.Context(), `select count(*), max(n) from public.effect`).Scan(&effects, &sessions))
			require.Equal(t, 1, effects)
			require.LessOrEqual(t, sessions, conns+1, "one of the fixture's among them")
		})
	}
}

// Two processes, and callers of each that share what one of them has asked: whoever comes after a success was told is told the same, whatever
// was asked before.
func TestWhatWasToldOnceIsToldFromThenOn(t *testing.T) {
	f := newFixture(t, "")
	guards := []*idempotency.Guard{f.newGuard(t, nil), f.newGuard(t, nil)}
	const keys = 20
	var told [keys]atomic.Pointer[string]
	var runs, shared atomic.Int64
	fails := errors.New("this time it fails")
	call := func(g *idempotency.Guard, k int) {
		before := told[k].Load()
		out, err := idempotency.Do(t.Context(), g, key(k), idempotency.Fingerprint{}, func(context.Context, *tx.Tx) (string, error) {
			n := runs.Add(1)
			if n%2 == 0 {
				return "", fails
			}
			return strconv.FormatInt(n, 10), nil
		})
		switch {
		case err == nil:
			told[k].CompareAndSwap(nil, &out.Value)
			if first := *told[k].Load(); first != out.Value {
				t.Errorf("key %d: %s after %s", k, out.Value, first)
			}
			if before != nil {
				shared.Add(1)
			}
		case before != nil || !errors.Is(err, fails) && !errors.Is(err, fault.IdempotencyInProgress):
			t.Errorf("key %d, answered: %t, got %v", k, before != nil, err)
		}
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for k := range keys {
				for try := 0; try < 20 && !t.Failed(); try++ {
					call(guards[i%2], k)
				}
			}
		})
	}
	all.Wait()
	require.Positive(t, shared.Load(), "calls after a success")
}
