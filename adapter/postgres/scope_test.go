package postgres_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// In a savepoint that is not read-only, a refused write still means that the server accepts none.
func TestServerTurnedReadOnlyUnderASavepoint(t *testing.T) {
	db := shop(t, postgres.Config{MaxConns: 1})
	pid := backend(t, db)
	exec(t, db, "select set_config('default_transaction_read_only', 'on', false)")
	c := begin(t, db, tx.BeginOptions{})
	require.NoError(t, c.Savepoint(t.Context(), "s1", false))
	_, err := c.Exec(t.Context(), "insert into shop.parents (id) values (10)")
	require.ErrorIs(t, err, fault.DBReadOnly)
	require.NotErrorIs(t, err, tx.ErrReadOnly)
	require.NoError(t, c.Rollback(t.Context()))
	require.NotEqual(t, pid, backend(t, db), "the connection is discarded")
}

// The error of a refused write says whether a read-only scope is open here: whoever ends scopes must end the right ones.
func TestScopesEndWithTheirSavepoints(t *testing.T) {
	type step = func(c transaction) error
	open := func(name string, readOnly bool) step {
		return func(c transaction) error { return c.Savepoint(t.Context(), name, readOnly) }
	}
	release := func(name string) step { return func(c transaction) error { return c.Release(t.Context(), name) } }
	undo := func(name string) step { return func(c transaction) error { return c.RollbackTo(t.Context(), name) } }
	db := shop(t, postgres.Config{MaxConns: 1})
	for name, k := range map[string]struct {
		steps []step
		want  error
	}{
		"inner released":         {[]step{open("a", true), open("b", false), release("b")}, tx.ErrReadOnly},
		"inner undone":           {[]step{open("a", true), open("b", false), undo("b")}, tx.ErrReadOnly},
		"outer released":         {[]step{open("a", false), open("b", true), release("a")}, fault.DBReadOnly},
		"outer undone":           {[]step{open("a", false), open("b", true), undo("a")}, fault.DBReadOnly},
		"inner of the same name": {[]step{open("a", true), open("a", false), release("a")}, tx.ErrReadOnly},
		"both of the same name":  {[]step{open("a", true), open("a", false), release("a"), release("a")}, fault.DBReadOnly},
		"middle one":             {[]step{open("a", false), open("b", true), open("c", false), release("b")}, fault.DBReadOnly},
	} {
		c := begin(t, db, tx.BeginOptions{})
		for _, do := range k.steps {
			require.NoError(t, do(c), name)
		}
		exec(t, c, "set local transaction_read_only = on") // a server that turns read-only
		_, err := c.Exec(t.Context(), "insert into shop.parents (id) values (10)")
		require.ErrorIs(t, err, k.want, name)
		require.NoError(t, c.Rollback(t.Context()))
	}
}

func TestAnUnknownOutcomeIsLogged(t *testing.T) {
	var log bytes.Buffer
	db, err := postgres.Open(t.Context(), postgres.Config{DSN: pgtest.DSN(t)}, &postgres.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	closeAtEnd(t, db)
	c := begin(t, db, tx.BeginOptions{})
	pid := backend(t, c)
	exec(t, db, "select pg_terminate_backend($1)", pid)
	waitGone(t, db, pid)
	require.ErrorIs(t, c.Commit(t.Context()), fault.DBCommitUnknown)
	require.Contains(t, log.String(), `level=WARN msg="outcome of a commit is unknown" error="postgres.Commit: DB_COMMIT_UNKNOWN: sqlstate=57P01`)
}
