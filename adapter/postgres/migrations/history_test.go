package migrations

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
)

// takeMark makes the insert of the file's own mark fail.
const takeMark = "insert into caskeleton.migration_checksum (stream, version, file, checksum) values ('orders', 1, 'x', repeat('0', 64));\n"

func TestAFileAndItsMarkAreOneTransaction(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	_, err := migrator(t, dsn, nil, orders("1_order", createOrders+takeMark)).Up(t.Context())
	require.ErrorContains(t, err, "00001_order.sql failed")
	require.False(t, query[bool](t, dsn, `select to_regclass('orders.order_line') is not null`))
	require.Equal(t, 0, query[int](t, dsn, `select max(version_id) from caskeleton.migrations_orders`))
	require.Equal(t, []string{"orders 00001_order.sql"}, up(t, dsn, orders("1_order", createOrders)))
}

func TestOutsideATransactionHistoryAndChecksumDoNotPart(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	_, err := migrator(t, dsn, nil, orders("1_order", "-- +goose NO TRANSACTION\n"+takeMark)).Up(t.Context())
	require.ErrorContains(t, err, "00001_order.sql failed")
	require.Equal(t, 0, query[int](t, dsn, `select max(version_id) from caskeleton.migrations_orders`))
}

// Not parallel: goose's registry is one for the process, which is why the kit does not look at it.
func TestGooseGlobalRegistryIsNotUsed(t *testing.T) {
	run := func(context.Context, *sql.Tx) error { return errors.New("a migration of somebody else") }
	require.NoError(t, goose.SetGlobalMigrations(goose.NewGoMigration(1, &goose.GoFunc{RunTx: run}, nil)))
	t.Cleanup(goose.ResetGlobalMigrations)
	require.Equal(t, kitFiles, up(t, emptyDSN(t), Idempotency()))
}
