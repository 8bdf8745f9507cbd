package migrationstest

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgtest"
)

// RuntimeDSN returns the address of the database at dsn for a new role that has what [migrations.Migrator.Grants] grants for the streams,
// and nothing else. The role is dropped when the test ends.
func RuntimeDSN(tb testing.TB, dsn string, streams ...migrations.Stream) string {
	tb.Helper()
	u, err := url.Parse(dsn)
	require.NoError(tb, err)
	role := "runtime_" + rand.Text()
	conn := pgtest.Connect(tb, dsn)
	name := pgx.Identifier{role}.Sanitize()
	_, err = conn.Exec(tb.Context(), `create role `+name+` login password 'secret'`)
	require.NoError(tb, err)
	tb.Cleanup(func() { // over a connection of its own: a test may cut all that it finds
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 30*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, dsn)
		require.NoError(tb, err)
		_, err = conn.Exec(ctx, `drop owned by `+name+`; drop role `+name)
		require.NoError(tb, errors.Join(err, conn.Close(ctx)))
	})
	m, err := migrations.New(dsn, streams, &migrations.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(tb, err)
	_, err = m.Grant(tb.Context(), migrations.Roles{Runtime: role})
	require.NoError(tb, err)
	u.User = url.UserPassword(role, "secret")
	return u.String()
}
