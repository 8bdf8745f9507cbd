package main

import (
	"context"
	"encoding/hex"
	"time"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pglock"
	"caskeleton.dev/lock"
)

// The two statements that a lease in a row cannot do without.
const (
	bareAcquireSQL = `
insert into bench.lease as l (digest, token, expires_at) values ($1, $2, clock_timestamp() + interval '30 seconds')
on conflict (digest) do update set token = excluded.token, expires_at = clock_timestamp() + interval '30 seconds' where l.expires_at <= clock_timestamp()
returning true`
	bareReleaseSQL       = `delete from bench.lease where digest = $1 and token = $2 returning expires_at <= clock_timestamp()`
	bareReleaseNotifySQL = `
with freed as (delete from bench.lease where digest = $1 and token = $2 returning 1)
select pg_notify('bench_lease', encode($1, 'hex')) from freed`
)

// locks are the ways to lock by PostgreSQL, and the floors.
type locks struct {
	hinted, polled, statements, notify, polling, advisory mutex
	drivers                                               []*pglock.Locks
	open                                                  []*postgres.DB
}

func (f *fixture) locks(ctx context.Context) (_ *locks, err error) {
	ls := &locks{}
	defer func() {
		if err != nil {
			ls.close(context.WithoutCancel(ctx))
		}
	}()
	var drivers [2]lock.Driver
	for i := range drivers {
		db, err := postgres.Open(ctx, postgres.Config{DSN: f.dsn}, nil)
		if err != nil {
			return nil, err
		}
		ls.open = append(ls.open, db)
		d, err := pglock.New(db, nil)
		if err != nil {
			return nil, err
		}
		drivers[i], ls.drivers = d, append(ls.drivers, d)
	}
	if ls.hinted, err = kitMutex(ctx, "pglock, with LISTEN", drivers, true); err != nil {
		return nil, err
	}
	if ls.polled, err = kitMutex(ctx, "pglock, without", drivers, false); err != nil {
		return nil, err
	}
	if _, err = f.bare.Exec(ctx, `create table bench.lease (digest bytea primary key, token bytea not null, expires_at timestamptz not null)`); err != nil {
		return nil, err
	}
	ls.statements = mutex{name: "two bare statements", lock: f.bareLease(bareReleaseSQL, nil)}
	ls.polling = mutex{name: "bare statements, polled each 100 ms", lock: f.bareLease(bareReleaseSQL, func(ctx context.Context, _ []byte) error {
		return pause(ctx, 100*time.Millisecond)
	})}
	ls.notify = mutex{name: "bare statements and LISTEN/NOTIFY", lock: f.bareListen}
	ls.advisory = mutex{name: "pg_advisory_xact_lock", lock: f.bareAdvisory}
	return ls, nil
}

func (ls *locks) close(ctx context.Context) {
	for _, m := range []mutex{ls.hinted, ls.polled} {
		if m.stop != nil {
			m.stop()
		}
	}
	for _, db := range ls.open {
		_ = db.Close(ctx)
	}
}

// bareLease locks by the two statements; wait is called where the key is held.
func (f *fixture) bareLease(release string, wait func(ctx context.Context, digest []byte) error) func(context.Context, int, string) (unlock, error) {
	return func(ctx context.Context, _ int, key string) (unlock, error) {
		digest, token := lock.Key{Name: key}.Digest(), []byte(hex.EncodeToString([]byte(key)))
		for {
			rows, err := f.bare.Query(ctx, bareAcquireSQL, digest[:], token)
			if err != nil {
				return nil, err
			}
			got := rows.Next()
			rows.Close()
			switch err := rows.Err(); {
			case err != nil:
				return nil, err
			case got:
				return func(ctx context.Context) error {
					_, err := f.bare.Exec(ctx, release, digest[:], token)
					return err
				}, nil
			}
			if err := wait(ctx, digest[:]); err != nil {
				return nil, err
			}
		}
	}
}

// bareListen waits on a connection that listens.
func (f *fixture) bareListen(ctx context.Context, node int, key string) (unlock, error) {
	if node == 0 {
		return f.bareLease(bareReleaseNotifySQL, nil)(ctx, node, key)
	}
	conn, err := f.bare.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `listen bench_lease`); err != nil {
		return nil, err
	}
	return f.bareLease(bareReleaseNotifySQL, func(ctx context.Context, _ []byte) error {
		_, err := conn.Conn().WaitForNotification(ctx)
		return err
	})(ctx, node, key)
}

// bareAdvisory waits in the server, and holds a connection and a transaction.
func (f *fixture) bareAdvisory(ctx context.Context, _ int, key string) (unlock, error) {
	t, err := f.bare.Begin(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := t.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, key); err != nil {
		_ = t.Rollback(ctx)
		return nil, err
	}
	return t.Commit, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
