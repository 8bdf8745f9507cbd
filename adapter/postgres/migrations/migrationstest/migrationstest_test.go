package migrationstest_test

import (
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
)

func TestDSNIsMigratedAndOneTestsOwn(t *testing.T) {
	t.Parallel()
	orders := migrations.Stream{Name: "orders", Schema: "orders", FS: fstest.MapFS{
		"00001_order.sql": {Data: []byte("-- +goose Up\ncreate table orders.order_line (id bigint primary key);\n")},
	}}
	for range 2 {
		dsn := migrationstest.DSN(t, migrations.Idempotency(), orders)
		m, err := migrations.New(dsn, []migrations.Stream{migrations.Idempotency(), orders}, nil)
		require.NoError(t, err)
		require.NoError(t, m.Verify(t.Context()))

		conn, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		// The second database would refuse the row if it were the first.
		_, err = conn.Exec(t.Context(), `insert into orders.order_line (id) values (1)`)
		require.NoError(t, err)
		require.NoError(t, conn.Close(t.Context()))
	}
}
