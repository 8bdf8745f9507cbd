package pgtest

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/embedded"
)

// exists asks the shared server about a database.
func exists(t *testing.T, c cluster, name string) (there bool) {
	t.Helper()
	require.NoError(t, c.with(t.Context(), func(conn *pgx.Conn) error {
		return conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = $1)`, name).Scan(&there)
	}))
	return there
}

func databaseOf(t *testing.T, dsn string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	return cfg.Database
}

func TestDSNIsATestsOwn(t *testing.T) {
	var name string
	t.Run("used", func(t *testing.T) {
		first, second := DSN(t), DSN(t)
		require.NotEqual(t, first, second)
		name = databaseOf(t, first)
		conn := Connect(t, first)
		_, err := conn.Exec(t.Context(), `CREATE SCHEMA app; CREATE TABLE app.t (x int)`)
		require.NoError(t, err)
		var n int
		require.NoError(t, Connect(t, second).QueryRow(t.Context(), `SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = 'app'`).Scan(&n))
		require.Zero(t, n)
		leaked, err := pgx.Connect(t.Context(), first) // a session that a test forgets must not keep the database
		require.NoError(t, err)
		require.True(t, exists(t, sharedCluster(t), leaked.Config().Database))
	})
	require.False(t, exists(t, sharedCluster(t), name), "the database must end with its test")
}

func TestTheVersionAskedForRuns(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	conn := Connect(t, PrivateServer(t, nil).DSN())
	want := os.Getenv(versionEnv)
	if want == "" {
		in, err := embedded.Find(t.Context(), logger(t))
		require.NoError(t, err)
		want = strconv.Itoa(in.Major)
	}
	var major string
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT (current_setting('server_version_num')::int / 10000)::text`).Scan(&major))
	require.Equal(t, want, major)

	t.Setenv(versionEnv, "seventeen")
	_, err := find(t.Context(), logger(t))
	require.ErrorContains(t, err, `PGTEST_VERSION is "seventeen"`)
}

func TestUnqualifiedNamesFail(t *testing.T) {
	conn := Connect(t, DSN(t))
	_, err := conn.Exec(t.Context(), `CREATE TABLE public.t (x int)`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `SELECT x FROM t`)
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg)
	require.Equal(t, "42P01", pg.Code)
	var path string
	require.NoError(t, conn.QueryRow(t.Context(), `SHOW search_path`).Scan(&path))
	require.Empty(t, path)
}

func TestAddress(t *testing.T) {
	const hidden = "secret"
	for dsn, options := range map[string]string{
		"postgres://u:" + hidden + "@127.0.0.1:5433/postgres?sslmode=disable":                     "-c search_path=",
		"postgresql://u:" + hidden + "@127.0.0.1:5433/postgres?options=-c%20jit%3Doff&dbname=x":   "-c jit=off -c search_path=",
		"host=127.0.0.1 port=5433 user=u password=" + hidden + " dbname=postgres sslmode=disable": "-c search_path=",
	} {
		cfg, err := pgx.ParseConfig(cluster{dsn: dsn}.address("pgtest_db_1_x"))
		require.NoError(t, err)
		require.Equal(t, "pgtest_db_1_x", cfg.Database)
		require.Equal(t, uint16(5433), cfg.Port)
		require.Equal(t, hidden, cfg.Password)
		require.Equal(t, options, cfg.RuntimeParams["options"])
	}
}

// TestChild is run alone, in a process of its own, by the test below.
func TestChild(t *testing.T) {
	var port string
	require.NoError(t, Connect(t, DSN(t)).QueryRow(t.Context(), `SHOW port`).Scan(&port))
	if want := os.Getenv("PGTEST_WANT_PORT"); want != "" {
		require.Equal(t, want, port)
	}
}

func TestDatabaseURLWins(t *testing.T) {
	srv := PrivateServer(t, nil)
	cfg, err := pgx.ParseConfig(srv.DSN())
	require.NoError(t, err)
	run := func(url, port string) (string, error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
		cmd.Env = append(os.Environ(), versionEnv+"=", "DATABASE_URL="+url, "PGTEST_WANT_PORT="+port)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	var port string
	require.NoError(t, Connect(t, srv.DSN()).QueryRow(t.Context(), `SHOW port`).Scan(&port))
	out, err := run(srv.DSN(), port)
	require.NoError(t, err, out)
	require.Contains(t, out, "--- PASS: TestChild")

	// A server that cannot be had fails the test; it is not skipped.
	for _, url := range []string{"postgres://u:open-sesame@127.0.0.1:1/x", "postgres://u:open-sesame@%zz"} {
		out, err = run(url, "")
		require.Error(t, err)
		require.Contains(t, out, "--- FAIL: TestChild")
		require.Contains(t, out, "pgtest: ")
		require.NotContains(t, out, "open-sesame")
		require.NotContains(t, out, cfg.Password)
	}
}
