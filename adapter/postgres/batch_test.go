package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

func TestBatch(t *testing.T) {
	const insert = "insert into shop.parents (id) values ($1)"
	check := func(t *testing.T, q postgres.Batcher) {
		t.Helper()
		b := &pgx.Batch{}
		b.Queue(insert, 10)
		b.Queue("select count(*) from shop.parents where id >= $1", 1)
		b.Queue(insert, 10)
		results := q.SendBatch(t.Context(), b)
		tag, err := results.Exec()
		require.NoError(t, err)
		require.EqualValues(t, 1, tag.RowsAffected())
		var n int64
		require.NoError(t, results.QueryRow().Scan(&n))
		require.EqualValues(t, 3, n)
		_, err = results.Exec()
		require.Equal(t, "23505", sqlstate(err))
		require.ErrorIs(t, err, fault.DBUniqueViolation)
		require.ErrorIs(t, results.Close(), fault.DBUniqueViolation)
		require.ErrorIs(t, results.Close(), fault.DBUniqueViolation, "again")
	}
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			check(t, db)
			require.Zero(t, db.Stat().AcquiredConns())

			c := begin(t, db, tx.BeginOptions{})
			q, ok := c.DBTX.(postgres.Batcher)
			require.True(t, ok)
			check(t, q)
			require.NoError(t, c.Rollback(t.Context()))
			require.ErrorIs(t, q.SendBatch(t.Context(), &pgx.Batch{}).Close(), tx.ErrDone)
			require.Zero(t, get[int64](t, db, "select count(*) from shop.parents where id = 10"))
		})
	}
}

func TestBatchMustNotBeginATransaction(t *testing.T) {
	db := shop(t, postgres.Config{MaxConns: 1})
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{})
	b.Queue("insert into shop.parents (id) values (10)")
	require.ErrorContains(t, db.SendBatch(t.Context(), b).Close(), "tx.Runner")
	require.Zero(t, get[int64](t, db, "select count(*) from shop.parents where id = 10"))
}
