package pgtest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/embedded"
)

// DSN returns the address of an empty database (a clone of template0) that is this test's alone, and is dropped when it ends.
func DSN(tb testing.TB) string {
	tb.Helper()
	return Template{}.DSN(tb)
}

// Connect opens a connection that is closed when the test ends.
func Connect(tb testing.TB, dsn string) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), dsn)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		ctx, cancel := cleanupContext(tb)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}

// cleanupContext outlives the test's own context, which is done before clean-up begins.
func cleanupContext(tb testing.TB) (context.Context, context.CancelFunc) {
	tb.Helper()
	return context.WithTimeout(context.WithoutCancel(tb.Context()), 30*time.Second)
}

func logger(tb testing.TB) *slog.Logger {
	tb.Helper()
	return slog.New(slog.NewTextHandler(tb.Output(), nil))
}

// startTimeout bounds the start of a server, a download of the binaries included.
const startTimeout = 6 * time.Minute

func start(tb testing.TB, o embedded.Options) (*embedded.Server, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	if o.BinDir == "" {
		in, err := find(ctx, logger(tb))
		if err != nil {
			return nil, err
		}
		o.BinDir = in.BinDir
	}
	return embedded.Start(ctx, o)
}
