package pgaudit_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgaudit"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/audit"
	"caskeleton.dev/reqctx"
	"caskeleton.dev/tx"
)

const schema = `
create schema shop;
create table shop.plain (
	id int8 primary key, qty int8 not null default 1,
	created_at timestamptz not null, created_by text not null, updated_at timestamptz not null, updated_by varchar(100) not null
);
create table shop.item (like shop.plain including all);
create trigger audit before insert or update on shop.item for each row execute function caskeleton.audit_stamp();`

var execModes = pgtest.ExecModes()

// through is the way from a test to its database: none, or a pooler in the end-to-end tests.
var through = func(_ *testing.T, dsn string) string { return dsn }

// shop is a database with two tables, of which shop.item has the trigger.
type shop struct {
	db     *postgres.DB
	runner *tx.Runner
}

func newShop(t *testing.T, mode string) *shop {
	t.Helper()
	s := &shop{}
	var err error
	s.db, err = postgres.Open(t.Context(), postgres.Config{DSN: through(t, migrationstest.DSN(t)), ExecMode: cmp.Or(mode, execModes[0]), MaxConns: 4}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.db.Close(context.WithoutCancel(t.Context()))) })
	s.runner, err = tx.NewRunner(s.db, nil)
	require.NoError(t, err)
	_, err = s.db.Exec(t.Context(), schema)
	require.NoError(t, err)
	return s
}

// as runs fn in a transaction of actor's, and returns when that began.
func (s *shop) as(t *testing.T, actor string, fn func(ctx context.Context, tr *tx.Tx, q postgres.DBTX)) (began time.Time) {
	t.Helper()
	require.NoError(t, s.runner.InWrite(reqctx.WithActor(t.Context(), actor), func(ctx context.Context, tr *tx.Tx) error {
		q, err := postgres.Querier(tr)
		if err != nil {
			return err
		}
		if err := q.QueryRow(ctx, `select transaction_timestamp()`).Scan(&began); err != nil {
			return err
		}
		fn(ctx, tr, q)
		return nil
	}))
	return began
}

func exec(ctx context.Context, t *testing.T, q postgres.DBTX, sql string, args ...any) {
	t.Helper()
	_, err := q.Exec(ctx, sql, args...)
	require.NoError(t, err)
}

func (s *shop) stamp(t *testing.T, table string, id int) (a audit.Stamp) {
	t.Helper()
	require.NoError(t, s.db.QueryRow(t.Context(), `select `+pgaudit.Columns+` from shop.`+table+` where id = $1`, id).Scan(pgaudit.Fields(&a)...))
	return a
}

func (s *shop) insert(ctx context.Context, t *testing.T, q postgres.DBTX, table string, id int) {
	t.Helper()
	exec(ctx, t, q, `insert into shop.`+table+` (id, `+pgaudit.Columns+`) values ($1, `+pgaudit.Values(2)+`)`, id, reqctx.Actor(ctx))
}

func stamp(created time.Time, by string, updated time.Time, changer string) audit.Stamp {
	return audit.Stamp{CreatedAt: created, CreatedBy: by, UpdatedAt: updated, UpdatedBy: changer}
}

// The store alone is right, and so it is with the trigger.
func TestTheStoreSetsTheColumns(t *testing.T) {
	t.Parallel()
	for _, mode := range execModes {
		s := newShop(t, mode)
		for _, table := range []string{"plain", "item"} {
			made := s.as(t, "ann", func(ctx context.Context, _ *tx.Tx, q postgres.DBTX) { s.insert(ctx, t, q, table, 1) })
			require.Equal(t, stamp(made, "ann", made, "ann"), s.stamp(t, table, 1), "%s %s", table, mode)
			for _, actor := range []string{"bob", "bob", "ann"} {
				changed := s.as(t, actor, func(ctx context.Context, _ *tx.Tx, q postgres.DBTX) {
					exec(ctx, t, q, `update shop.`+table+` set qty = qty + 1, `+pgaudit.Set(2)+` where id = $1`, 1, reqctx.Actor(ctx))
				})
				require.Equal(t, stamp(made, "ann", changed, actor), s.stamp(t, table, 1), "%s %s", table, mode)
			}
			changed := s.as(t, "cy", func(ctx context.Context, _ *tx.Tx, q postgres.DBTX) {
				exec(ctx, t, q, `insert into shop.`+table+` (id, `+pgaudit.Columns+`) values ($1, `+pgaudit.Values(2)+`)
					on conflict (id) do update set `+pgaudit.Set(2), 1, reqctx.Actor(ctx))
			})
			require.Equal(t, stamp(made, "ann", changed, "cy"), s.stamp(t, table, 1), "%s %s", table, mode)
		}
	}
}

func TestBlankActorsAreTheSystem(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	for i, actor := range []string{"", "  ", "\t\n"} {
		made := s.as(t, actor, func(ctx context.Context, _ *tx.Tx, q postgres.DBTX) { s.insert(ctx, t, q, "item", i) })
		require.Equal(t, stamp(made, "system", made, "system"), s.stamp(t, "item", i))
	}
	// The trigger does not rely on reqctx.
	for i, actor := range []string{"", "  ", "\t\n"} {
		made := s.as(t, "", func(ctx context.Context, _ *tx.Tx, q postgres.DBTX) {
			exec(ctx, t, q, `insert into shop.item (id, created_by) values ($1, $2)`, 10+i, actor)
			exec(ctx, t, q, `select set_config('caskeleton.actor', $1, true)`, actor)
			exec(ctx, t, q, `insert into shop.item (id) values ($1)`, 20+i)
			exec(ctx, t, q, `update shop.item set updated_by = $2 where id = $1`, 10+i, actor)
		})
		for _, id := range []int{10 + i, 20 + i} {
			require.Equal(t, stamp(made, "system", made, "system"), s.stamp(t, "item", id))
		}
	}
}

// Statements that name no column are right too, for as many rows as they like, and nothing of it outlives the transaction.
func TestBulkStatements(t *testing.T) {
	t.Parallel()
	for _, mode := range execModes {
		s := newShop(t, mode)
		made := s.as(t, "ann", func(ctx context.Context, tr *tx.Tx, q postgres.DBTX) {
			require.NoError(t, pgaudit.Act(ctx, tr))
			exec(ctx, t, q, `insert into shop.item (id) select generate_series(1, 1000)`)
		})
		changed := s.as(t, "bob", func(ctx context.Context, tr *tx.Tx, q postgres.DBTX) {
			require.NoError(t, pgaudit.Act(ctx, tr))
			exec(ctx, t, q, `update shop.item set qty = qty + 1 where id <= $1`, 500)
		})
		count := func(a audit.Stamp) (n int) {
			require.NoError(t, s.db.QueryRow(t.Context(), `select count(*) from shop.item where (`+pgaudit.Columns+`) = ($1, $2, $3, $4)`,
				a.CreatedAt, a.CreatedBy, a.UpdatedAt, a.UpdatedBy).Scan(&n))
			return n
		}
		require.Equal(t, 500, count(stamp(made, "ann", changed, "bob")), mode)
		require.Equal(t, 500, count(stamp(made, "ann", made, "ann")), mode)

		// Whoever says nothing is nobody, above all not the one before.
		changed = s.as(t, "cy", func(ctx context.Context, _ *tx.Tx, q postgres.DBTX) {
			exec(ctx, t, q, `update shop.item set qty = qty + 1 where id > $1`, 500)
		})
		require.Equal(t, 500, count(stamp(made, "ann", changed, "system")), mode)
	}
}

func TestCreatedCannotChange(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	long := time.Date(1999, 1, 2, 3, 4, 5, 0, time.UTC)
	made := s.as(t, "ann", func(ctx context.Context, tr *tx.Tx, q postgres.DBTX) {
		require.NoError(t, pgaudit.Act(ctx, tr))
		exec(ctx, t, q, `insert into shop.item (id, `+pgaudit.Columns+`) values ($1, $2, 'mallory', $2, 'eve')`, 1, long)
	})
	require.Equal(t, stamp(made, "ann", made, "ann"), s.stamp(t, "item", 1))
	changed := s.as(t, "bob", func(ctx context.Context, tr *tx.Tx, q postgres.DBTX) {
		require.NoError(t, pgaudit.Act(ctx, tr))
		exec(ctx, t, q, `update shop.item set created_at = $2, created_by = 'mallory', updated_at = $2, updated_by = 'eve' where id = $1`, 1, long)
		exec(ctx, t, q, `update shop.item set created_at = null, created_by = null, updated_at = null, updated_by = null where id = $1`, 1)
	})
	require.Equal(t, stamp(made, "ann", changed, "bob"), s.stamp(t, "item", 1))

	// Without an actor in the transaction, the statement's own counts where it can be told, for one who inserts and for one who updates.
	made = s.as(t, "", func(ctx context.Context, _ *tx.Tx, q postgres.DBTX) {
		exec(ctx, t, q, `insert into shop.item (id, `+pgaudit.Columns+`) values ($1, $2, 'dan', $2, 'eve')`, 2, long)
	})
	require.Equal(t, stamp(made, "dan", made, "dan"), s.stamp(t, "item", 2))
	changed = s.as(t, "", func(ctx context.Context, _ *tx.Tx, q postgres.DBTX) {
		exec(ctx, t, q, `update shop.item set created_by = 'mallory', updated_by = ' fay ' where id = $1`, 2)
	})
	require.Equal(t, stamp(made, "dan", changed, "fay"), s.stamp(t, "item", 2))
}

func TestASavepointBringsTheActorBack(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	made := s.as(t, "ann", func(ctx context.Context, tr *tx.Tx, q postgres.DBTX) {
		require.NoError(t, pgaudit.Act(ctx, tr))
		require.ErrorIs(t, tr.Savepoint(ctx, func(ctx context.Context) error {
			require.NoError(t, pgaudit.Act(reqctx.WithActor(ctx, "bob"), tr))
			return context.Canceled
		}), context.Canceled)
		exec(ctx, t, q, `insert into shop.item (id) values (1)`)
	})
	require.Equal(t, stamp(made, "ann", made, "ann"), s.stamp(t, "item", 1))
}

// Of two transactions, the one that began first writes last, and waits for the other: who it was is told, and time does not go back.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	made := s.as(t, "ann", func(ctx context.Context, _ *tx.Tx, q postgres.DBTX) { s.insert(ctx, t, q, "item", 1) })
	change := `update shop.item set qty = qty + 1, ` + pgaudit.Set(2) + ` where id = $1`

	began, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.runner.InWrite(reqctx.WithActor(t.Context(), "first"), func(ctx context.Context, tr *tx.Tx) error {
			close(began)
			<-goOn
			q, err := postgres.Querier(tr)
			if err != nil {
				return err
			}
			_, err = q.Exec(ctx, change, 1, reqctx.Actor(ctx))
			return err
		})
	}()
	<-began
	second := s.as(t, "second", func(ctx context.Context, _ *tx.Tx, q postgres.DBTX) {
		exec(ctx, t, q, change, 1, reqctx.Actor(ctx))
		close(goOn)
		require.Eventually(t, func() bool {
			var waits bool
			err := s.db.QueryRow(ctx, `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits)
			return err == nil && waits
		}, 30*time.Second, time.Millisecond)
	})
	require.NoError(t, <-ended)
	require.Equal(t, stamp(made, "ann", second, "first"), s.stamp(t, "item", 1))
}

func ExampleValues() {
	fmt.Println(`insert into shop.item (id, ` + pgaudit.Columns + `) values ($1, ` + pgaudit.Values(2) + `)`)
	// Output: insert into shop.item (id, created_at, created_by, updated_at, updated_by) values ($1, transaction_timestamp(), set_config('caskeleton.actor', $2::text, true), transaction_timestamp(), $2::text)
}

func ExampleSet() {
	fmt.Println(`update shop.item set name = $2, ` + pgaudit.Set(3) + ` where id = $1`)
	// Output: update shop.item set name = $2, updated_at = transaction_timestamp(), updated_by = set_config('caskeleton.actor', $3::text, true) where id = $1
}
