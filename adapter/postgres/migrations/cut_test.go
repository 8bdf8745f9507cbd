package migrations

import (
	"io/fs"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/proxytest"
)

// everything is the kit's streams and a service's, with files of both kinds.
func everything() []Stream {
	return append(All(), orders("1_order", createOrders, "2_index", createIndexFile, "3_c", "create table orders.c (id int);\n"))
}

// TestARunCutAtAnyStatementGoesForward cuts a run at its first statement, the next at its second, and so on; whenever something was kept,
// it begins at the first again. So each statement that changes anything is cut once at least, and each run begins where one was cut.
func TestARunCutAtAnyStatementGoesForward(t *testing.T) {
	t.Parallel()
	whole := emptyDSN(t)
	up(t, whole, everything()...)
	want := schemaOf(t, whole)
	for mode, name := range map[proxytest.Mode]string{proxytest.Before: "before", proxytest.After: "after", proxytest.OnAnswer: "on answer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := emptyDSN(t)
			proxy := proxytest.New(t, dsn)
			m := migrator(t, proxy.DSN(), nil, everything()...)
			statements := 0
			for _, s := range everything() {
				statements += statementsOf(t, s)
			}
			kept, at, cuts := progress(t, dsn), 1, 0
			for {
				fault := proxy.BreakAt(mode, at)
				_, err := m.Up(t.Context())
				if err == nil {
					break // the fault was for a statement after the last
				}
				<-fault.Struck()
				cuts++
				if now := progress(t, dsn); now != kept {
					kept, at = now, 1
				} else {
					at++
				}
				require.Less(t, cuts, 1000, "it does not go forward")
			}
			require.Greater(t, cuts, statements, "fewer statements than there are")
			require.Empty(t, cmp.Diff(want, schemaOf(t, dsn)))
			require.NoError(t, migrator(t, dsn, nil, everything()...).Verify(t.Context()))
		})
	}
}

// statementsOf counts what the stream's files hold.
func statementsOf(t *testing.T, s Stream) int {
	t.Helper()
	files, err := fs.Glob(s.FS, "*.sql")
	require.NoError(t, err)
	n := 0
	for _, name := range files {
		body, err := fs.ReadFile(s.FS, name)
		require.NoError(t, err)
		n += len(splitStatements(string(body)))
	}
	return n
}

// progress describes what is there, and fails where a history and its checksums have parted.
func progress(t *testing.T, dsn string) string {
	t.Helper()
	conn := connect(t, dsn)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	// Whoever was cut off may still be about to end.
	require.Eventually(t, func() bool {
		var left int
		err := conn.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'caskeleton-migrations'`).Scan(&left)
		return err == nil && left == 0
	}, 30*time.Second, time.Millisecond)
	have := schemaOf(t, dsn)
	for _, s := range everything() {
		var exists bool
		require.NoError(t, conn.QueryRow(t.Context(), `select to_regclass($1) is not null`, s.table()).Scan(&exists))
		if !exists {
			continue
		}
		var applied, marked string
		require.NoError(t, conn.QueryRow(t.Context(), `select coalesce(string_agg(version_id::text, ' ' order by version_id), '') from `+s.table()+` where version_id > 0`).Scan(&applied))
		if applied != "" {
			require.NoError(t, conn.QueryRow(t.Context(), `select coalesce(string_agg(version::text, ' ' order by version), '') from caskeleton.migration_checksum where stream = $1`, s.Name).Scan(&marked))
		}
		require.Equal(t, applied, marked, s.Name)
		have += s.Name + ": " + applied + "\n"
	}
	return have
}
