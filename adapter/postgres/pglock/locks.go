package pglock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/lock"
)

// Options configure [Locks]. The zero value is the default.
type Options struct {
	// ListenDSN leads to the database past a pooler, for LISTEN, which needs a session of its own. "" means the DB's own DSN.
	ListenDSN string
}

// Locks implements [lock.Driver] and [lock.Listener] with a row of caskeleton.lock_lease for each held key. Safe for concurrent use.
type Locks struct {
	db              *postgres.DB
	errs            *postgres.Classifier
	listenDSN       string
	quiet, farewell time.Duration
}

var (
	_ lock.Driver   = (*Locks)(nil)
	_ lock.Listener = (*Locks)(nil)
)

// New returns the locks kept in db, where the stream "lock" is migrated ([caskeleton.dev/adapter/postgres/migrations.Lock]). It asks the database
// nothing yet. o may be nil.
func New(db *postgres.DB, o *Options) (*Locks, error) {
	if o == nil {
		o = &Options{}
	}
	if o.ListenDSN != "" {
		if _, err := pgx.ParseConfig(o.ListenDSN); err != nil { // which may quote the password
			return nil, errors.New("pglock: ListenDSN cannot be parsed; write it as postgres://user:password@host:5432/database?sslmode=verify-full, or leave it out where the DB is reached without a pooler")
		}
	}
	errs, err := postgres.NewClassifier()
	if err != nil {
		return nil, err
	}
	return &Locks{db: db, errs: errs, listenDSN: o.ListenDSN, quiet: quiet, farewell: farewell}, nil
}

// maxLease is what an interval times a number of microseconds expresses exactly: the number is a double.
const maxLease = 100 * 365 * 24 * time.Hour

// MaxLease implements [lock.Driver]: a hundred years.
func (*Locks) MaxLease() time.Duration { return maxLease }

// acquireSQL looks first, so that a key that is held, and marked where it has to be, costs a read. Otherwise it inserts, or locks the row
// that is there; what is_free says then, of one reading of the clock, holds for all columns. One's own token takes anew, since an attempt
// may be repeated whose answer was lost.
const acquireSQL = `
with seen as materialized (
  select s.remaining, s.contended
  from (select expires_at - clock_timestamp() as remaining, contended from caskeleton.lock_lease where digest = $1 and token <> $4 offset 0) s
  where s.remaining > interval '0'
), taken as (
  insert into caskeleton.lock_lease as l (digest, region, name, token, acquired_at, expires_at)
  select $1, $2, $3, $4, c.now, c.now + $5 * interval '1 microsecond'
  from (select clock_timestamp() as now offset 0) c
  where not exists (select from seen where contended or not $6)
  on conflict (digest) do update set (token, acquired_at, expires_at, contended) = (
    select
      case when s.is_free then $4 else l.token end,
      case when s.is_free then s.now else l.acquired_at end,
      case when s.is_free then s.now + $5 * interval '1 microsecond' else l.expires_at end,
      l.contended or $6 and not s.is_free
    from (select c.now, l.expires_at <= c.now or l.token = $4 as is_free from (select clock_timestamp() as now offset 0) c) s
  )
  returning token = $4 as granted, expires_at - clock_timestamp() as remaining, contended
)
select granted, (extract(epoch from remaining) * 1000000)::bigint, contended from taken
union all
select false, (extract(epoch from remaining) * 1000000)::bigint, contended from seen where not exists (select from taken)`

// Acquire implements [lock.Driver]. It is safe to repeat with the same token.
func (l *Locks) Acquire(ctx context.Context, k lock.Key, token lock.Token, lease time.Duration, waiting bool) (lock.Holder, error) {
	digest, region := k.Digest(), lock.Key{Name: k.Region}
	var granted, contended bool
	var us int64
	err := l.db.QueryRow(ctx, acquireSQL, digest[:], region.Display(), k.Display(), token[:], postgres.Micros(lease), waiting).Scan(&granted, &us, &contended)
	if err != nil || granted {
		return lock.Holder{}, err
	}
	return holder(us, contended), nil
}

const lookSQL = `
select (extract(epoch from s.remaining) * 1000000)::bigint, s.contended
from (select expires_at - clock_timestamp() as remaining, contended from caskeleton.lock_lease where digest = $1 offset 0) s
where s.remaining > interval '0'`

// Look implements [lock.Driver].
func (l *Locks) Look(ctx context.Context, k lock.Key) (lock.Holder, error) {
	digest := k.Digest()
	var us int64
	var contended bool
	err := l.db.QueryRow(ctx, lookSQL, digest[:]).Scan(&us, &contended)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lock.Holder{}, nil
	case err != nil:
		return lock.Holder{}, err
	}
	return holder(us, contended), nil
}

// renewSQL locks the row before it looks at the clock: an UPDATE alone computes its values first, and waits for the row then.
const renewSQL = `
with held as materialized (
  select digest, expires_at from caskeleton.lock_lease where digest = $1 and token = $2 for update
)
update caskeleton.lock_lease l set expires_at = clock_timestamp() + $3 * interval '1 microsecond'
from held where l.digest = held.digest and held.expires_at > clock_timestamp()
returning true`

// Renew implements [lock.Driver].
func (l *Locks) Renew(ctx context.Context, k lock.Key, token lock.Token, lease time.Duration) (bool, error) {
	digest := k.Digest()
	var held bool
	err := l.db.QueryRow(ctx, renewSQL, digest[:], token[:], postgres.Micros(lease)).Scan(&held)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return held, err
}

// releaseSQL announces a release to whoever is known to wait. The case is what keeps NOTIFY, and its lock, away from the others.
const releaseSQL = `
with freed as (
  delete from caskeleton.lock_lease where digest = $1 and token = $2
  returning expires_at <= clock_timestamp() as expired, contended
)
select expired, case when contended then pg_notify('` + channel + `', encode($1, 'hex'))::text end from freed`

// Release implements [lock.Driver].
func (l *Locks) Release(ctx context.Context, k lock.Key, token lock.Token) (lock.Freed, error) {
	digest := k.Digest()
	var expired bool
	var announced *string
	err := l.db.QueryRow(ctx, releaseSQL, digest[:], token[:]).Scan(&expired, &announced)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lock.Lost, nil
	case err != nil:
		return 0, err
	case expired:
		return lock.Expired, nil
	}
	return lock.Released, nil
}

// reapSQL takes only rows that nobody is at.
const reapSQL = `
with gone as (
  delete from caskeleton.lock_lease where digest in (
    select digest from caskeleton.lock_lease where expires_at < clock_timestamp() - $1 * interval '1 microsecond' limit $2 for update skip locked
  ) returning 1
)
select count(*) from gone`

// Reap deletes up to limit rows whose lease ended at least olderThan ago, and returns how many they were: those of holders that crashed,
// of keys that nobody wanted since. It reads the whole table and belongs into a job, not before a use of a lock. A holder that comes back
// later than olderThan is told that it lost its lease, where it had only outlived it.
func (l *Locks) Reap(ctx context.Context, olderThan time.Duration, limit int) (int, error) {
	switch {
	case olderThan < 0 || olderThan > maxLease:
		return 0, fmt.Errorf("pglock: olderThan is %s; use 0 to %s, an hour for example", olderThan, maxLease)
	case limit < 1:
		return 0, fmt.Errorf("pglock: limit is %d; use 1 or more, 1000 for example", limit)
	}
	var n int
	err := l.db.QueryRow(ctx, reapSQL, postgres.Micros(olderThan), limit).Scan(&n)
	return n, err
}

// holder is one whose lease had so long to go. It may have passed while its row was answered.
func holder(us int64, contended bool) lock.Holder {
	return lock.Holder{Held: true, Left: time.Duration(max(us, 1)) * time.Microsecond, Contended: contended}
}
