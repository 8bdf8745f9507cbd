package intlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/lock"
)

const (
	defaultTable = "public.int_lock"
	maxName      = 63 // bytes of an identifier; PostgreSQL cuts off the rest
	maxLease     = 36500 * 24 * time.Hour
)

// Options configure [Locks]. The zero value is the default.
type Options struct {
	// Table is schema.table, each part as the catalog has it: in lower case, unless the table was created in quotes. "" means "public.int_lock".
	Table string
}

// Locks implements [lock.Driver]. Safe for concurrent use.
type Locks struct {
	db                            *postgres.DB
	table                         string // quoted
	acquire, look, renew, release string
}

var _ lock.Driver = (*Locks)(nil)

// New returns the locks kept in a table of db, which it does not look at yet: see [Locks.Check]. o may be nil.
func New(db *postgres.DB, o *Options) (*Locks, error) {
	if db == nil {
		return nil, errors.New("intlock: a database is required; pass what postgres.Open returned")
	}
	name := defaultTable
	if o != nil && o.Table != "" {
		name = o.Table
	}
	parts := strings.Split(name, ".")
	for _, p := range parts {
		if len(parts) != 2 || p == "" || len(p) > maxName || !utf8.ValidString(p) || strings.Contains(p, "\x00") {
			return nil, fmt.Errorf("intlock: Options.Table is %q; write schema.table, as in %s, each part of at most %d bytes", name, defaultTable, maxName)
		}
	}
	s := &Locks{db: db, table: pgx.Identifier(parts).Sanitize()}
	in := strings.NewReplacer("{table}", s.table, "{now}", nowSQL, "{end}", endSQL, "{row}", rowSQL)
	s.acquire, s.look, s.renew, s.release = in.Replace(acquireSQL), in.Replace(lookSQL), in.Replace(renewSQL), in.Replace(releaseSQL)
	return s, nil
}

// The casts keep an index on CHAR(36) of use: compared as text, it would not be.
const (
	nowSQL = `clock_timestamp() at time zone 'UTC'`
	endSQL = `clock_timestamp() at time zone 'UTC' + $4::bigint * interval '1 microsecond'`
	rowSQL = `l.region = $1::varchar and l.lock_key = $2::bpchar`
)

// lookSQL returns how many microseconds the holder has left, no row without one. Where another hand left EXPIRED_AFTER empty, Spring never takes the row
// over, and neither do we.
const lookSQL = `
select (extract(epoch from least(coalesce(l.expired_after, 'infinity'), n.t + interval '36500 days') - n.t) * 1000000)::bigint
from {table} l, (select {now}) n (t)
where {row} and coalesce(l.expired_after, 'infinity') > n.t`

// acquireSQL is one statement that never fails for being late: a conflict locks the row, and then asks the clock. CREATED_DATE stays that of the row, as
// Spring leaves it. To be taken twice by one token is a repeat.
const acquireSQL = `
with taken as (
  insert into {table} as l (region, lock_key, client_id, created_date, expired_after)
  values ($1::varchar, $2::bpchar, $3::bpchar, {now}, {end})
  on conflict (lock_key, region) do update set client_id = excluded.client_id, expired_after = {end}
  where l.client_id = excluded.client_id or l.expired_after <= {now}
  returning 1)
select exists (select from taken), coalesce((` + lookSQL + `), 0)`

// Acquire implements [lock.Driver]. The table cannot say that somebody waits: waiting changes nothing.
func (s *Locks) Acquire(ctx context.Context, k lock.Key, token lock.Token, lease time.Duration, _ bool) (lock.Holder, error) {
	for {
		var taken bool
		var left int64
		if err := s.run(ctx, k, func(region, key string) error {
			return s.db.QueryRow(ctx, s.acquire, region, key, uuid(token), postgres.Micros(lease)).Scan(&taken, &left)
		}); err != nil || taken {
			return lock.Holder{}, err
		}
		if left > 0 {
			return holder(left), nil
		}
		// Whoever holds it came after the statement had begun: the next one sees him.
	}
}

// Look implements [lock.Driver].
func (s *Locks) Look(ctx context.Context, k lock.Key) (lock.Holder, error) {
	var left int64
	err := s.run(ctx, k, func(region, key string) error {
		return s.db.QueryRow(ctx, s.look, region, key).Scan(&left)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return lock.Holder{}, nil
	}
	return holder(left), err
}

// renewSQL asks the clock once it has the row: an UPDATE alone would not ask again after a wait for somebody who only locked it.
const renewSQL = `
with held as materialized (select l.expired_after from {table} l where {row} and l.client_id = $3::bpchar for update)
update {table} l set expired_after = {end} from held where {row} and held.expired_after > {now}`

// Renew implements [lock.Driver].
func (s *Locks) Renew(ctx context.Context, k lock.Key, token lock.Token, lease time.Duration) (held bool, err error) {
	err = s.run(ctx, k, func(region, key string) error {
		tag, err := s.db.Exec(ctx, s.renew, region, key, uuid(token), postgres.Micros(lease))
		held = tag.RowsAffected() == 1
		return err
	})
	return held, err
}

const releaseSQL = `delete from {table} l where {row} and l.client_id = $3::bpchar returning l.expired_after > {now}`

// Release implements [lock.Driver].
func (s *Locks) Release(ctx context.Context, k lock.Key, token lock.Token) (lock.Freed, error) {
	var inTime bool
	err := s.run(ctx, k, func(region, key string) error {
		return s.db.QueryRow(ctx, s.release, region, key, uuid(token)).Scan(&inTime)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lock.Lost, nil
	case err != nil:
		return 0, err
	case inTime:
		return lock.Released, nil
	}
	return lock.Expired, nil
}

// MaxLease implements [lock.Driver]: a hundred years. The column could keep more, and time.Duration not much more.
func (s *Locks) MaxLease() time.Duration { return maxLease }

// run makes a statement about the row of k. An error that says that it does not fit the table is explained.
func (s *Locks) run(ctx context.Context, k lock.Key, statement func(region, key string) error) error {
	region, key, err := rowOf(k)
	if err != nil {
		return err
	}
	return s.explain(ctx, statement(region, key))
}

func holder(micros int64) lock.Holder {
	return lock.Holder{Held: micros > 0, Left: time.Duration(micros) * time.Microsecond}
}
