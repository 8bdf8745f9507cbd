package intlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/intlock"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

func TestCheckKnowsTheLayout(t *testing.T) {
	const (
		public = `intlock: the table "public"."int_lock" `
		as70   = ", as in schema-postgresql.sql of Spring Integration 7.0"
	)
	dsn := pgtest.DSN(t)
	for name, c := range map[string]struct{ ddl, want string }{
		"7.0": {layout70, ""},
		"7.0, as people have it": {`create table INT_LOCK (LOCK_KEY varchar(36) not null, REGION text not null, CLIENT_ID varchar(64), CREATED_DATE timestamp(3) not null,
			EXPIRED_AFTER timestamp not null default now(), note text, version int not null default 0, primary key (REGION, LOCK_KEY))`, ""},
		"none": {"select 1", `intlock: there is no table "public"."int_lock"; create it with schema-postgresql.sql of Spring Integration 7.0, or correct Options.Table`},
		"6.5": {layout65, public + "has the layout of Spring Integration 6.5 or older, without EXPIRED_AFTER, in which the holder's lease is not kept; " +
			"move all Java services to 7.0 and migrate the table, or use pglock"},
		"half migrated": {
			layout65 + "; alter table int_lock add expired_after timestamp",
			public + "lets expired_after be null, as a row of Spring Integration 6.5 would, which nobody could ever take over; delete such rows and set it NOT NULL" + as70,
		},
		"no client":      {layout70 + "; alter table int_lock drop client_id", public + "has no column client_id; create it anew" + as70},
		"with a zone":    {layout70 + "; alter table int_lock alter expired_after type timestamptz", public + "has a column expired_after of type timestamp with time zone; give it the type that it has there" + as70},
		"a uuid":         {layout70 + "; alter table int_lock alter client_id type uuid using null", public + "has a column client_id of type uuid; give it the type that it has there" + as70},
		"narrow":         {layout70 + "; alter table int_lock alter region type varchar(50)", public + "has a column region for 50 characters, where 100 are needed; widen it" + as70},
		"one more":       {layout70 + "; alter table int_lock add owner text not null", public + "has a column owner that a row must fill; drop it, or give it a default" + as70},
		"no key":         {layout70 + "; alter table int_lock drop constraint int_lock_pk", public + "has no primary key (lock_key, region); add it" + as70},
		"another key":    {layout70 + "; alter table int_lock drop constraint int_lock_pk, add primary key (lock_key)", public + "has no primary key (lock_key, region); add it" + as70},
		"a partial key":  {layout70 + "; alter table int_lock drop constraint int_lock_pk; create unique index on int_lock (lock_key, region) where region = 'a'", public + "has no primary key (lock_key, region); add it" + as70},
		"a deferred key": {layout70 + "; alter table int_lock drop constraint int_lock_pk, add primary key (lock_key, region) deferrable", public + "has no primary key (lock_key, region); add it" + as70},
	} {
		t.Run(name, func(t *testing.T) {
			refill(t, dsn, c.ddl)
			for _, mode := range execModes {
				g := newNode(t, dsn, mode)
				if c.want == "" {
					require.NoError(t, g.Check(t.Context()), mode)
					g.releases(t, key("k"), g.acquires(t, key("k"), time.Minute), lock.Released)
					continue
				}
				require.EqualError(t, g.Check(t.Context()), c.want, mode)
			}
		})
	}
}

// Whoever did not ask at the start is told at the first lock.
func TestTheDriverExplainsWhatDoesNotFit(t *testing.T) {
	dsn := pgtest.DSN(t)
	for name, c := range map[string]struct{ ddl, want string }{
		"none":     {"select 1", "there is no table"},
		"6.5":      {layout65, "has the layout of Spring Integration 6.5 or older"},
		"no key":   {layout70 + "; alter table int_lock drop constraint int_lock_pk", "has no primary key"},
		"one more": {layout70 + "; alter table int_lock add owner text not null", "has a column owner that a row must fill"},
		"narrow":   {layout70 + "; alter table int_lock alter lock_key type varchar(30)", "has a column lock_key for 30 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			refill(t, dsn, c.ddl)
			g := newNode(t, dsn, "")
			_, err := g.Acquire(t.Context(), key("k"), newToken(), time.Minute, false)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, g.Check(t.Context()).Error(), err.Error(), "and nothing else")
			if name == "none" || name == "6.5" {
				_, err = g.Look(t.Context(), key("k"))
				require.ErrorContains(t, err, c.want)
				_, err = g.Renew(t.Context(), key("k"), newToken(), time.Minute)
				require.ErrorContains(t, err, c.want)
				_, err = g.Release(t.Context(), key("k"), newToken())
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

// What is not the table's fault stays as it is.
func TestTheDriverInventsNoExplanation(t *testing.T) {
	g := newNode(t, database(t, layout70), "")
	g.exec(t, `create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'no' using errcode = '23503'; end $$`)
	g.exec(t, `create trigger refuse before insert on public.int_lock for each row execute function public.refuse()`)
	_, err := g.Acquire(t.Context(), key("k"), newToken(), time.Minute, false)
	require.ErrorIs(t, err, fault.DBForeignKeyViolation)
	require.NotContains(t, err.Error(), "int_lock")
}

func TestCheckKnowsWhatTheRoleMayDo(t *testing.T) {
	dsn := database(t, layout70)
	conn := pgtest.Connect(t, dsn)
	role := pgx.Identifier{"intlock_" + conn.Config().Database}.Sanitize()
	_, err := conn.Exec(t.Context(), `create role `+role+`; grant usage on schema public to `+role+`; grant select, insert on public.int_lock to `+role)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()), `drop owned by `+role+`; drop role `+role)
		require.NoError(t, err)
	})
	db := open(t, postgres.Config{DSN: dsn, MaxConns: 1})
	_, err = db.Exec(t.Context(), `select set_config('role', $1, false)`, strings.Trim(role, `"`))
	require.NoError(t, err)
	const want = `intlock: the role may not do all that a lock needs with the table "public"."int_lock"; grant it UPDATE, DELETE`
	l := locksOf(t, db, "")
	require.EqualError(t, l.Check(t.Context()), want)
	_, err = l.Acquire(t.Context(), key("k"), newToken(), time.Minute, false)
	require.EqualError(t, err, want)
	require.ErrorIs(t, err, fault.DBAccessDenied, "the code is kept")
}

func TestTheTableMayBeAnother(t *testing.T) {
	dsn := database(t, `create schema "Ja""va"; set search_path = "Ja""va"; `+replace(layout70, "INT_LOCK_PK", "LOCK_PK", "INT_LOCK", `"LOCK; drop table x"`))
	g := newNode(t, dsn, "")
	g.Locks = locksOf(t, g.db, `Ja"va.LOCK; drop table x`)
	require.NoError(t, g.Check(t.Context()))
	g.releases(t, key("k"), g.acquires(t, key("k"), time.Minute), lock.Released)

	for _, table := range []string{"int_lock", "a.b.c", ".int_lock", "public.", "public.\x00", "public.\xff", "public." + string(make([]byte, 64))} {
		_, err := intlock.New(g.db, &intlock.Options{Table: table})
		require.ErrorContains(t, err, "write schema.table, as in public.int_lock, each part of at most 63 bytes")
	}
	_, err := intlock.New(nil, nil)
	require.ErrorContains(t, err, "a database is required")
}
