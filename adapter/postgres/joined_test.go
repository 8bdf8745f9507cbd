package postgres_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

func TestQuerierOfAJoinedTransaction(t *testing.T) {
	t.Parallel()
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			db, begin := w.fresh(t)
			c := begin("read committed")
			_, _, q := wrap(t, c)
			tag, err := q.Exec(t.Context(), `update shop.items set qty = $1 where id < $2`, 7, int32(100))
			require.NoError(t, err)
			require.EqualValues(t, 2, tag.RowsAffected())

			rows, err := q.Query(t.Context(), `select id, name, qty = $1 as seven from shop.items order by id`, 7)
			require.NoError(t, err)
			type item struct {
				ID    int64
				Name  string
				Seven bool
			}
			items, err := pgx.CollectRows(rows, pgx.RowToStructByName[item])
			require.NoError(t, err)
			require.Equal(t, []item{{1, "one", true}, {2, "two", true}}, items)

			rows, err = q.Query(t.Context(), `select id, name from shop.items where id = $1`, 1)
			require.NoError(t, err)
			require.True(t, rows.Next())
			values, err := rows.Values()
			require.NoError(t, err)
			require.Equal(t, []any{int64(1), "one"}, values)
			require.False(t, rows.Next())
			require.NoError(t, rows.Err())

			var name string
			require.ErrorIs(t, q.QueryRow(t.Context(), `select name from shop.items where id = $1`, 9).Scan(&name), pgx.ErrNoRows)
			var id int64
			require.ErrorContains(t, q.QueryRow(t.Context(), `select name from shop.items where id = $1`, 1).Scan(&id), "postgres: ")
			require.NoError(t, c.commit())
			require.EqualValues(t, 14, get[int64](t, db, `select sum(qty)::int8 from shop.items`))

			_, err = q.Exec(t.Context(), `delete from shop.items where id = $1`, 99)
			if _, conn := c.handle.(*sql.Conn); !conn { // which autocommits: Committed has to be called
				require.ErrorIs(t, err, tx.ErrDone)
			}
		})
	}
}

func TestBatchOfAJoinedTransaction(t *testing.T) {
	t.Parallel()
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			_, begin := w.fresh(t)
			c := begin("read committed")
			_, _, q := wrap(t, c)
			batcher, ok := q.(postgres.Batcher)
			require.True(t, ok)
			b := &pgx.Batch{}
			b.Queue(`insert into shop.parents (id) values ($1), ($2)`, 3, 4)
			b.Queue(`select id from shop.parents where id >= $1 order by id`, 3)
			b.Queue(`select count(*) from shop.parents`)
			var called int64
			b.Queue(`delete from shop.parents where id = $1`, 4).Exec(func(tag pgconn.CommandTag) error { called = tag.RowsAffected(); return nil })
			b.Queue(`delete from shop.parents where id = $1`, 3)
			results := batcher.SendBatch(t.Context(), b)
			tag, err := results.Exec()
			require.NoError(t, err)
			require.EqualValues(t, 2, tag.RowsAffected())
			rows, err := results.Query()
			require.NoError(t, err)
			ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			require.NoError(t, err)
			require.Equal(t, []int64{3, 4}, ids)
			var n int64
			require.NoError(t, results.QueryRow().Scan(&n))
			require.EqualValues(t, 4, n)
			require.NoError(t, results.Close(), "which runs the rest")
			require.EqualValues(t, 1, called)
			require.EqualValues(t, 2, get[int64](t, q, `select count(*) from shop.parents`))
			require.NoError(t, results.Close())

			b = &pgx.Batch{}
			b.Queue(`insert into shop.parents (id) values ($1)`, 1)
			b.Queue(`insert into shop.parents (id) values ($1)`, 8)
			require.ErrorIs(t, batcher.SendBatch(t.Context(), b).Close(), fault.DBUniqueViolation)
			require.NoError(t, c.rollback())
		})
	}
}

func TestArgumentsThatDriversDisagreeAbout(t *testing.T) {
	t.Parallel()
	db := shop(t, postgres.Config{})
	for _, name := range []string{"sql.Tx", "sql.Conn"} {
		c := beginners[name](t, db, "read committed")
		_, _, q := wrap(t, c)
		_, err := q.Exec(t.Context(), `select $1::int, $2::text[]`, 1, []string{"a"})
		require.ErrorContains(t, err, "argument $2 is a []string")
		require.ErrorContains(t, err, "one jsonb")
		require.NotErrorIs(t, err, tx.ErrDone)
		require.NoError(t, c.rollback())
	}
}

func TestScopesOfAJoinedTransaction(t *testing.T) {
	t.Parallel()
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			db, begin := w.fresh(t)
			runner, err := tx.NewRunner(db, nil)
			require.NoError(t, err)
			c := begin("read committed")
			tr, j, q := wrap(t, c)
			ctx := j.Context(t.Context(), runner)
			exec(t, q, `savepoint s1`)

			require.ErrorIs(t, tr.Savepoint(ctx, func(ctx context.Context) error {
				return runner.InWrite(ctx, func(ctx context.Context, _ *tx.Tx) error {
					_, err := q.Exec(ctx, `insert into shop.parents (id) values ($1)`, 1)
					return err
				})
			}), fault.DBUniqueViolation)
			require.NoError(t, tr.Savepoint(ctx, func(ctx context.Context) error {
				_, err := q.Exec(ctx, `insert into shop.parents (id) values ($1)`, 3)
				return err
			}))
			require.ErrorIs(t, tr.Savepoint(ctx, func(ctx context.Context) error {
				return runner.InReadOnly(ctx, func(ctx context.Context, _ *tx.Tx) error {
					_, err := q.Exec(ctx, `insert into shop.parents (id) values ($1)`, 5)
					return err
				})
			}), tx.ErrReadOnly)
			exec(t, q, `insert into shop.parents (id) values ($1)`, 6)
			exec(t, q, `release savepoint s1`)
			require.NoError(t, c.commit())
			require.NoError(t, j.Committed(ctx))
			require.EqualValues(t, 2, parents(t, db))
		})
	}
}

func TestASwallowedFailureMakesTheCallersCommitFail(t *testing.T) {
	t.Parallel()
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			db, begin := w.fresh(t)
			runner, err := tx.NewRunner(db, nil)
			require.NoError(t, err)
			c := begin("read committed")
			tr, j, q := wrap(t, c)
			require.NoError(t, tr.AfterCommit(func(context.Context) error { t.Error("a hook ran"); return nil }))
			exec(t, q, `insert into shop.parents (id) values ($1)`, 3)
			_ = runner.InWrite(j.Context(t.Context(), runner), func(context.Context, *tx.Tx) error { return context.Canceled })
			err = c.commit()
			if _, conn := c.handle.(*sql.Conn); !conn { // where nobody looks at what COMMIT was answered by
				require.Error(t, err)
			}
			require.Zero(t, parents(t, db))
			require.ErrorIs(t, j.Committed(t.Context()), tx.ErrRollbackOnly)
		})
	}
}

func TestWhatAJoinedTransactionCannotKeep(t *testing.T) {
	t.Parallel()
	db := shop(t, postgres.Config{})
	runner, err := tx.NewRunner(db, nil)
	require.NoError(t, err)
	c := beginners["sql.Tx"](t, db, "read committed")
	tr, j, _ := wrap(t, c)
	require.ErrorIs(t, postgres.AddWitness(tr, func(context.Context, postgres.DBTX) (tx.Outcome, error) { return tx.Unknown, nil }), tx.ErrJoined)
	nothing := func(context.Context, *tx.Tx) error { return nil }
	ctx := j.Context(t.Context(), runner)
	require.ErrorIs(t, runner.With(tx.Options{Witness: true}).InWrite(ctx, nothing), tx.ErrJoined)
	require.ErrorIs(t, runner.InRootWrite(ctx, nothing), tx.ErrNestedRoot)
	require.NoError(t, runner.InNew(ctx, func(_ context.Context, own *tx.Tx) error {
		require.False(t, own.Joined())
		return nil
	}))
	require.NoError(t, c.rollback())
	j.RolledBack()
}
