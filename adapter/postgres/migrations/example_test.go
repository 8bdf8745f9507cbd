package migrations_test

import (
	"fmt"
	"testing/fstest"

	"caskeleton.dev/adapter/postgres/migrations"
)

// A service gives its own files as one more stream, usually from an embed.FS. Mistakes in them are found without a database.
func ExampleNew() {
	files := fstest.MapFS{
		"00001_order.sql": {Data: []byte("-- +goose Up\ncreate table orders.order_line (id bigint primary key, sku text not null);\n")},
		"00002_index.sql": {Data: []byte("-- +goose Up\ncreate index concurrently order_line_sku on orders.order_line (sku);\n")},
	}
	streams := append(migrations.All(), migrations.Stream{Name: "orders", Schema: "orders", FS: files})
	_, err := migrations.New("postgres://localhost/orders", streams, nil)
	fmt.Println(err)
	// Output:
	// migrations: stream orders: 00002_index.sql: statement 1 is CONCURRENTLY, which PostgreSQL refuses in a transaction: move it to a file of its own with "-- +goose NO TRANSACTION"
}
