package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func prepare(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `CREATE SCHEMA app; CREATE TABLE app.t (x int); INSERT INTO app.t VALUES (42)`)
	return errors.Join(err, conn.Close(ctx))
}

// forget removes what a template with a name for once would leave for a day.
func forget(t *testing.T, c cluster, tm Template) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		require.NoError(t, c.with(ctx, func(conn *pgx.Conn) error {
			name, err := tm.ensure(ctx, c, conn)
			if err != nil {
				return err
			}
			_, err = conn.Exec(ctx, "ALTER DATABASE "+name+" WITH IS_TEMPLATE false")
			return errors.Join(err, drop(ctx, conn, name))
		}))
	})
}

func TestTemplateIsPreparedOnce(t *testing.T) {
	c := sharedCluster(t)
	var prepared atomic.Int32
	tm := Template{Name: rand.Text(), Prepare: func(ctx context.Context, dsn string) error {
		prepared.Add(1)
		return prepare(ctx, dsn)
	}}
	forget(t, c, tm)
	t.Run("clones", func(t *testing.T) {
		for i := range 4 {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				conn := Connect(t, tm.DSN(t))
				var sum int
				_, err := conn.Exec(t.Context(), `INSERT INTO app.t VALUES ($1)`, i)
				require.NoError(t, err)
				require.NoError(t, conn.QueryRow(t.Context(), `SELECT sum(x) FROM app.t`).Scan(&sum))
				require.Equal(t, 42+i, sum, "clones are apart")
			})
		}
	})
	require.Equal(t, int32(1), prepared.Load())
}

func TestFailedPreparationLeavesNothing(t *testing.T) {
	c := sharedCluster(t)
	broken := errors.New("broken migration")
	var made string
	tm := Template{Name: rand.Text(), Prepare: func(_ context.Context, dsn string) error {
		made = databaseOf(t, dsn)
		return broken
	}}
	require.NoError(t, c.with(t.Context(), func(conn *pgx.Conn) error {
		_, err := tm.clone(t.Context(), c, conn)
		require.ErrorIs(t, err, broken)
		return nil
	}))
	require.False(t, exists(t, c, made))
	tm.Prepare = prepare
	forget(t, c, tm)
	require.True(t, exists(t, c, databaseOf(t, tm.DSN(t))), "the next one prepares it")
}

// A sweep between look-up and clone must not fail the test that cloned.
func TestTemplateThatVanishesIsMadeAgain(t *testing.T) {
	c := sharedCluster(t)
	var prepared int
	tm := Template{Name: rand.Text(), Prepare: func(ctx context.Context, dsn string) error {
		prepared++
		return prepare(ctx, dsn)
	}}
	_ = tm.DSN(t)
	forget(t, c, tm)
	require.NoError(t, c.with(t.Context(), func(conn *pgx.Conn) error {
		name, err := tm.ensure(t.Context(), c, conn)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "ALTER DATABASE "+name+" WITH IS_TEMPLATE false")
		require.NoError(t, err)
		return drop(t.Context(), conn, name)
	}))
	_ = tm.DSN(t)
	require.Equal(t, 2, prepared)
}

func TestSweepRemovesLeftovers(t *testing.T) {
	c := sharedCluster(t)
	id := rand.Text()[:10]
	var now string
	conn, err := c.connect(t.Context())
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT extract(epoch FROM clock_timestamp())::bigint::text`).Scan(&now))
	var hourAgo, halfHourAgo string
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT ($1::text::bigint - 3700)::text, ($1::text::bigint - 1800)::text`, now).Scan(&hourAgo, &halfHourAgo))
	name := func(kind, epoch string) string { return "pgtest_" + kind + "_" + epoch + "_" + lower(id) }
	kept := map[string]bool{
		name("db", "1000"): false, name("db", hourAgo): false, name("db", halfHourAgo): true,
		name("template", "1000"): false, name("template", hourAgo): true,
		name("db", "2000"):  true, // somebody is connected
		"mine_" + lower(id): true,
	}
	for db := range kept {
		_, err := conn.Exec(t.Context(), "CREATE DATABASE "+db+" TEMPLATE template0 IS_TEMPLATE true")
		require.NoError(t, err)
		t.Cleanup(func() {
			ctx, cancel := cleanupContext(t)
			defer cancel()
			require.NoError(t, c.with(ctx, func(conn *pgx.Conn) error {
				_, _ = conn.Exec(ctx, "ALTER DATABASE "+db+" WITH IS_TEMPLATE false")
				return drop(ctx, conn, db)
			}))
		})
	}
	busy := Connect(t, c.address(name("db", "2000")))
	require.NoError(t, dropLeftovers(t.Context(), conn))
	for db, want := range kept {
		require.Equal(t, want, exists(t, c, db), db)
	}
	require.NoError(t, busy.Ping(t.Context()))
}

func lower(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] |= 0x20
	}
	return string(b)
}
