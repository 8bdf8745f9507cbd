package migrations

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/pgtest"
)

// childDSN makes the test binary a second process that migrates this database with the orders stream of childStream.
const childDSN, childSlow = "MIGRATIONS_TEST_CHILD_DSN", "MIGRATIONS_TEST_CHILD_SLOW"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childDSN); dsn != "" {
		os.Exit(child(dsn))
	}
	os.Exit(m.Run())
}

func child(dsn string) int {
	m, err := New(dsn, []Stream{Idempotency(), childStream(os.Getenv(childSlow) != "")}, quiet())
	if err == nil {
		var done []Applied
		done, err = m.Up(context.Background())
		for _, a := range done {
			_, _ = fmt.Fprintln(os.Stdout, a.Stream, a.File)
		}
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func childStream(slow bool) Stream {
	if slow {
		return orders("1_order", createOrders+"select pg_sleep(300);")
	}
	return orders("1_order", createOrders, "2_index", createIndexFile)
}

const (
	createOrders    = "create table orders.order_line (id bigint primary key, sku text not null);\n"
	createIndexFile = "-- +goose NO TRANSACTION\ncreate unique index concurrently if not exists order_line_sku on orders.order_line (sku);\n"
)

// orders returns a service's stream of (number_name, body) pairs.
func orders(pairs ...string) Stream {
	dir := fstest.MapFS{}
	for p := range slices.Chunk(pairs, 2) {
		dir["0000"+p[0]+".sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + p[1])}
	}
	return Stream{Name: "orders", Schema: "orders", FS: dir}
}

func with(s Stream, pairs ...string) Stream {
	dir, ok := s.FS.(fstest.MapFS)
	if !ok {
		panic("not a stream of orders")
	}
	more, _ := orders(pairs...).FS.(fstest.MapFS)
	dir = maps.Clone(dir)
	maps.Copy(dir, more)
	s.FS = dir
	return s
}

// emptyDSN returns the superuser's DSN of a new and empty database.
func emptyDSN(t *testing.T) string {
	t.Helper()
	return pgtest.DSN(t)
}

func withDatabase(t *testing.T, dsn, name string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	u.Path = "/" + name
	return u.String()
}

// quiet keeps what every migration logs out of the tests' output.
func quiet() *Options { return &Options{Logger: slog.New(slog.DiscardHandler)} }

func migrator(t *testing.T, dsn string, o *Options, streams ...Stream) *Migrator {
	t.Helper()
	if o == nil {
		o = quiet()
	}
	m, err := New(dsn, streams, o)
	require.NoError(t, err)
	return m
}

// up migrates and returns "stream file" of what was applied.
func up(t *testing.T, dsn string, streams ...Stream) []string {
	t.Helper()
	done, err := migrator(t, dsn, nil, streams...).Up(t.Context())
	require.NoError(t, err)
	return names(done)
}

func names(done []Applied) []string {
	var out []string
	for _, a := range done {
		out = append(out, a.Stream+" "+a.File)
	}
	return out
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(ctx) })
	return conn
}

func execSQL(t *testing.T, dsn, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, sql)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
}

func query[T any](t *testing.T, dsn, sql string, args ...any) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	var v T
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&v))
	require.NoError(t, conn.Close(t.Context()))
	return v
}

// logBuffer collects log lines of several goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
