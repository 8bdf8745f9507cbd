package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/embedded"
)

// cluster is the server that test databases are made on.
type cluster struct{ dsn string }

// shared is looked up once a process: finding and attaching would otherwise cost every test some milliseconds.
var shared struct {
	sync.Once
	cluster
	err error
}

func sharedCluster(tb testing.TB) cluster {
	tb.Helper()
	shared.Do(func() {
		shared.dsn = os.Getenv("DATABASE_URL")
		switch {
		case shared.dsn == "":
			shared.dsn, shared.err = startShared(tb)
		case os.Getenv(versionEnv) != "":
			shared.err = errors.New(versionEnv + " chooses among servers that tests start, and DATABASE_URL names another: unset one of them")
		}
		if shared.err == nil {
			sweep(tb, shared.cluster)
			sweepServers(tb)
		}
	})
	require.NoError(tb, shared.err, "pgtest needs a PostgreSQL")
	return shared.cluster
}

func startShared(tb testing.TB) (string, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	in, err := find(ctx, logger(tb))
	if err != nil {
		return "", err
	}
	dir, err := embedded.SharedDataDir(in.Major)
	if err != nil {
		return "", err
	}
	srv, err := embedded.Start(ctx, embedded.Options{
		DataDir: dir, BinDir: in.BinDir, Logger: logger(tb), FsyncOff: true,
		Settings: map[string]string{"max_connections": "300"},
	})
	if err != nil {
		return "", err
	}
	return srv.DSN(), nil
}

// connect opens a connection to the maintenance database: that of the cluster's own DSN, so that advisory locks of all processes meet.
func (c cluster) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(c.dsn)
	if err != nil {
		return nil, errors.New("pgtest: DATABASE_URL is not a PostgreSQL address: use postgres://user:password@host:port/database")
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("pgtest: connect to the server of the test databases: %w", err)
	}
	return conn, nil
}

// with runs fn on a connection of its own.
func (c cluster) with(ctx context.Context, fn func(*pgx.Conn) error) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return fn(conn)
}

// address returns the DSN of another database of the cluster, with an empty search_path.
func (c cluster) address(database string) string {
	const empty = "-c search_path="
	u, err := url.Parse(c.dsn)
	if err != nil || u.Scheme == "" {
		return c.dsn + " dbname=" + database + " options='" + empty + "'" // keywords: the last one wins
	}
	u.Path = "/" + database
	q := u.Query()
	q.Del("dbname")
	q.Set("options", strings.TrimSpace(q.Get("options")+" "+empty))
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // libpq reads a plus as a plus
	return u.String()
}

// create makes a database by cloning template, under a name that tells its age by the server's clock.
func create(ctx context.Context, conn *pgx.Conn, template string) (string, error) {
	var epoch int64
	if err := conn.QueryRow(ctx, `SELECT extract(epoch FROM clock_timestamp())::bigint`).Scan(&epoch); err != nil {
		return "", fmt.Errorf("pgtest: %w", err)
	}
	name := fmt.Sprintf("pgtest_db_%d_%s", epoch, strings.ToLower(rand.Text()))
	encoding := ""
	if template == "template0" {
		encoding = " ENCODING 'UTF8'"
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template+encoding); err != nil {
		return "", fmt.Errorf("pgtest: create a database for a test: %w", err)
	}
	return name, nil
}

func drop(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	return err
}
