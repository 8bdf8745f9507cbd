package migrations

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaitingForTheLockIsBounded(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	holder := connect(t, dsn)
	_, err := holder.Exec(t.Context(), `select pg_advisory_lock($1, $2)`, lockSpace, lockKey("core"))
	require.NoError(t, err)
	pid := query[string](t, dsn, `select pid::text from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`)

	var log logBuffer
	_, err = migrator(t, dsn, &Options{LockTimeout: 300 * time.Millisecond, Logger: log.logger()}).Up(t.Context())
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, "stream core")
	require.ErrorContains(t, err, "waited 300ms for the backend with pid "+pid+":")
	require.Contains(t, log.String(), `msg="waiting for another migrator" stream=core`)

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = migrator(t, dsn, nil).Up(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, holder.Close(t.Context()))
	require.Equal(t, coreFiles, up(t, dsn))
}

func TestOneStreamDoesNotWaitForAnother(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn)
	_, err := connect(t, dsn).Exec(t.Context(), `select pg_advisory_lock($1, $2)`, lockSpace, lockKey("orders"))
	require.NoError(t, err)
	_, err = migrator(t, dsn, &Options{LockTimeout: 300 * time.Millisecond}, Idempotency()).Up(t.Context())
	require.NoError(t, err)
}

func TestALockThatWasLostIsTold(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	var log logBuffer
	s := orders("1_order", "create function orders.hidden() returns void language sql as 'select pg_catalog.pg_advisory_unlock_all()';\nselect orders.hidden();\n")
	_, err := migrator(t, dsn, &Options{Logger: log.logger()}, s).Up(t.Context())
	require.NoError(t, err)
	require.Contains(t, log.String(), "level=ERROR msg=\"migration lock was not held at its release")
}

func TestNoLockIsLeft(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	var log logBuffer
	_, err := migrator(t, dsn, &Options{Logger: log.logger()}, orders("1_order", createOrders)).Up(t.Context())
	require.NoError(t, err)
	require.NotContains(t, log.String(), "level=ERROR")
	require.NotContains(t, log.String(), "level=WARN")
	_, err = migrator(t, dsn, &Options{LockTimeout: time.Millisecond}, orders("1_order", createOrders)).Up(t.Context())
	require.NoError(t, err)
}

func TestDDLDoesNotQueueForLong(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	s := orders("1_order", createOrders)
	up(t, dsn, s)
	s = with(s, "2_note", "alter table orders.order_line add note text;\n")
	reader, err := connect(t, dsn).Begin(t.Context())
	require.NoError(t, err)
	_, err = reader.Exec(t.Context(), `select count(*) from orders.order_line`)
	require.NoError(t, err)

	_, err = migrator(t, dsn, &Options{TableLockTimeout: 100 * time.Millisecond}, s).Up(t.Context())
	require.ErrorContains(t, err, "SQLSTATE 55P03")
	require.NoError(t, reader.Rollback(t.Context()))
	require.Equal(t, []string{"orders 00002_note.sql"}, up(t, dsn, s))
}

func TestAConcurrentIndexWaitsForOlderTransactions(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	s := orders("1_order", createOrders)
	up(t, dsn, s)
	old, err := connect(t, dsn).Begin(t.Context())
	require.NoError(t, err)
	_, err = old.Exec(t.Context(), `insert into orders.order_line values (1, 'a')`)
	require.NoError(t, err)

	errs := make(chan error, 1)
	m := migrator(t, dsn, &Options{TableLockTimeout: time.Millisecond}, with(s, "2_index", createIndexFile))
	go func() {
		_, err := m.Up(t.Context())
		errs <- err
	}()
	watch := connect(t, dsn)
	require.Eventually(t, func() bool {
		var waits bool
		err := watch.QueryRow(t.Context(), `select exists (select from pg_locks where locktype in ('virtualxid', 'transactionid') and not granted)`).Scan(&waits)
		return err == nil && waits
	}, 30*time.Second, 20*time.Millisecond)
	require.NoError(t, old.Commit(t.Context()))
	require.NoError(t, <-errs)
}
