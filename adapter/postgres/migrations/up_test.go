package migrations

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	coreFiles = []string{"core 00001_migration_checksum.sql", "core 00002_commit_witness.sql", "core 00003_audit.sql", "core 00004_operator_action.sql"}
	kitFiles  = append(slices.Clip(coreFiles), "idempotency 00001_idempotency_record.sql", "idempotency 00002_idempotency_key.sql",
		"idempotency 00003_external_effects.sql")
)

// afterCore is what a first run of core and more applies.
func afterCore(more ...string) []string { return append(slices.Clone(coreFiles), more...) }

func TestUpOnAnEmptyDatabaseAndAgain(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	s := orders("1_order", createOrders, "2_index", createIndexFile)
	require.Equal(t, append(slices.Clone(kitFiles), "orders 00001_order.sql", "orders 00002_index.sql"), up(t, dsn, Idempotency(), s))
	require.Empty(t, up(t, dsn, Idempotency(), s))

	// Each stream has its history, with goose's baseline and its own versions only; each file has a checksum.
	for table, want := range map[string]string{"core": "0,1,2,3,4", "idempotency": "0,1,2,3", "orders": "0,1,2"} {
		require.Equal(t, want, query[string](t, dsn, `select string_agg(version_id::text, ',' order by version_id) from caskeleton.migrations_`+table))
	}
	require.Equal(t, len(kitFiles)+2, query[int](t, dsn, `select count(*) from caskeleton.migration_checksum`))
	require.NoError(t, migrator(t, dsn, nil, Idempotency(), s).Verify(t.Context()))
}

func TestUpAddsCoreAndRunsItFirst(t *testing.T) {
	t.Parallel()
	require.Equal(t, afterCore("orders 00001_order.sql"), up(t, emptyDSN(t), orders("1_order", createOrders)))
	require.Equal(t, afterCore("orders 00001_order.sql"), up(t, emptyDSN(t), orders("1_order", createOrders), Core()))
	require.Equal(t, coreFiles, up(t, emptyDSN(t)))
}

func TestConcurrentUpsApplyEachFileOnce(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	const n = 8
	type result struct {
		done []Applied
		err  error
	}
	results := make(chan result, n)
	start := make(chan struct{})
	for range n {
		m := migrator(t, dsn, nil, Idempotency(), childStream(false))
		go func() {
			<-start
			done, err := m.Up(t.Context())
			results <- result{done, err}
		}()
	}
	close(start)
	var all []string
	for range n {
		r := <-results
		require.NoError(t, r.err)
		all = append(all, names(r.done)...)
	}
	require.ElementsMatch(t, append(slices.Clone(kitFiles), "orders 00001_order.sql", "orders 00002_index.sql"), all)
}

func TestConcurrentProcessesApplyEachFileOnce(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	var out [4]bytes.Buffer
	var cmds [4]*exec.Cmd
	for i := range cmds {
		cmds[i] = childProcess(t, dsn, false)
		cmds[i].Stdout, cmds[i].Stderr = &out[i], &out[i]
		require.NoError(t, cmds[i].Start())
	}
	var all []string
	for i := range cmds {
		require.NoError(t, cmds[i].Wait(), out[i].String())
		all = append(all, strings.Split(strings.TrimSpace(out[i].String()), "\n")...)
	}
	require.ElementsMatch(t, append(slices.Clone(kitFiles), "orders 00001_order.sql", "orders 00002_index.sql"), deleteEmpty(all))
}

func TestAKilledMigratorLeavesNoLockAndNoMark(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	cmd := childProcess(t, dsn, true)
	require.NoError(t, cmd.Start())
	watch := connect(t, dsn)
	require.Eventually(t, func() bool {
		var asleep bool
		err := watch.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')`).Scan(&asleep)
		return err == nil && asleep
	}, 30*time.Second, 20*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	// The server notices within client_connection_check_interval; the next migrator waits for it.
	require.Equal(t, []string{"orders 00001_order.sql", "orders 00002_index.sql"}, up(t, dsn, Idempotency(), childStream(false)))
}

// Of several that start at once, the one that migrates is killed in the middle of a file: one of those who wait goes on.
func TestAKilledMigratorDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	first := childProcess(t, dsn, true)
	require.NoError(t, first.Start())
	watch := connect(t, dsn)
	sees := func(sql string) {
		require.Eventually(t, func() bool {
			var ok bool
			return watch.QueryRow(t.Context(), sql).Scan(&ok) == nil && ok
		}, 30*time.Second, 20*time.Millisecond)
	}
	sees(`select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')`)
	var out [3]bytes.Buffer
	var waiting [3]*exec.Cmd
	for i := range waiting {
		waiting[i] = childProcess(t, dsn, false)
		waiting[i].Stdout, waiting[i].Stderr = &out[i], &out[i]
		require.NoError(t, waiting[i].Start())
	}
	sees(`select count(*) = 4 and count(*) filter (where query like '%pg_try_advisory_lock%') = 3 from pg_stat_activity
		where datname = current_database() and application_name = 'caskeleton-migrations'`)
	require.NoError(t, first.Process.Kill())
	require.Error(t, first.Wait())
	var all []string
	for i := range waiting {
		require.NoError(t, waiting[i].Wait(), out[i].String())
		all = append(all, strings.Split(strings.TrimSpace(out[i].String()), "\n")...)
	}
	require.ElementsMatch(t, []string{"orders 00001_order.sql", "orders 00002_index.sql"}, deleteEmpty(all))
	require.NoError(t, migrator(t, dsn, nil, Idempotency(), childStream(false)).Verify(t.Context()))
}

func childProcess(t *testing.T, dsn string, slow bool) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDSN+"="+dsn)
	if slow {
		cmd.Env = append(cmd.Env, childSlow+"=1")
	}
	return cmd
}

func deleteEmpty(in []string) []string {
	var out []string
	for _, s := range in {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

func TestAnInterruptedRunGoesForward(t *testing.T) {
	t.Parallel()
	good := []string{createOrders, "create table orders.b (id int);\n", createIndexFile, "create table orders.d (id int);\n"}
	for broken := range good {
		t.Run(strconv.Itoa(broken+1), func(t *testing.T) {
			t.Parallel()
			dsn := emptyDSN(t)
			var bad, fixed []string
			for i, body := range good {
				name := strconv.Itoa(i+1) + "_f"
				fixed = append(fixed, name, body)
				if i == broken {
					// The first statement would succeed: it must not stay.
					body = "create table orders.left_over (id int);\nselect no_such_column;\n"
				}
				bad = append(bad, name, body)
			}
			done, err := migrator(t, dsn, nil, orders(bad...)).Up(t.Context())
			require.ErrorContains(t, err, "stream orders: 0000"+strconv.Itoa(broken+1)+"_f.sql failed, nothing of it was kept")
			require.Len(t, done, len(coreFiles)+broken, "core and the files before the broken one")
			require.False(t, query[bool](t, dsn, `select to_regclass('orders.left_over') is not null`))
			require.Equal(t, broken, query[int](t, dsn, `select max(version_id) from caskeleton.migrations_orders`))

			require.Len(t, up(t, dsn, orders(fixed...)), len(good)-broken)
			require.NoError(t, migrator(t, dsn, nil, orders(fixed...)).Verify(t.Context()))
		})
	}
}

func TestAnInterruptedIndexIsBuiltAnew(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	s := orders("1_order", createOrders+"insert into orders.order_line values (1, 'a'), (2, 'a');\n")
	up(t, dsn, s)
	s = with(s, "2_index", createIndexFile)
	_, err := migrator(t, dsn, nil, s).Up(t.Context())
	require.ErrorContains(t, err, "00002_index.sql failed, it ran outside a transaction")
	valid := `select indisvalid from pg_index where indexrelid = 'orders.order_line_sku'::regclass`
	require.False(t, query[bool](t, dsn, valid), "PostgreSQL leaves an invalid index")

	execSQL(t, dsn, `delete from orders.order_line where id = 2`)
	require.Equal(t, []string{"orders 00002_index.sql"}, up(t, dsn, s))
	require.True(t, query[bool](t, dsn, valid))
}

func TestAFileThatRanWithoutItsMarkIsMarked(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	s := orders("1_order", createOrders)
	up(t, dsn, s)
	execSQL(t, dsn, `create unique index order_line_sku on orders.order_line (sku)`)
	require.Equal(t, []string{"orders 00002_index.sql"}, up(t, dsn, with(s, "2_index", createIndexFile)))
}

func TestALostSessionIsNotReplaced(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	s := orders("1_order", createOrders, "2_b", "create table orders.b (id int);\n")
	// The log line between the two files is the moment to cut the session.
	cut := afterLog{Handler: slog.DiscardHandler, line: "migration applied", then: func() {
		execSQL(t, dsn, `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and application_name = 'caskeleton-migrations'`)
	}}
	up(t, dsn)
	done, err := migrator(t, dsn, &Options{Logger: slog.New(cut)}, s).Up(t.Context())
	require.Error(t, err)
	require.Equal(t, []string{"orders 00001_order.sql"}, names(done))
	require.False(t, query[bool](t, dsn, `select to_regclass('orders.b') is not null`), "a new session would not have the lock")
	require.Equal(t, []string{"orders 00002_b.sql"}, up(t, dsn, s))
}

type afterLog struct {
	slog.Handler
	line string
	then func()
}

func (a afterLog) Enabled(context.Context, slog.Level) bool { return true }

func (a afterLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == a.line {
		a.then()
	}
	return nil
}

func TestACancelledUpStopsAndGivesTheLockBack(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	ctx, cancel := context.WithCancel(t.Context())
	watch := connect(t, dsn)
	errs := make(chan error, 1)
	m := migrator(t, dsn, nil, childStream(true))
	go func() {
		_, err := m.Up(ctx)
		errs <- err
	}()
	require.Eventually(t, func() bool {
		var asleep bool
		err := watch.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')`).Scan(&asleep)
		return err == nil && asleep
	}, 30*time.Second, 20*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-errs, context.Canceled)
	require.Len(t, up(t, dsn, childStream(false)), 2)
}

func TestAnEmptyHistoryIsABaseline(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	execSQL(t, dsn, `create schema caskeleton; create table caskeleton.migrations_core (id integer primary key generated by default as identity,
		version_id bigint not null, is_applied boolean not null, tstamp timestamp not null default now())`)
	require.Equal(t, kitFiles, up(t, dsn, Idempotency()))
}

func TestAStreamOnASchemaThatIsNotEmpty(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	execSQL(t, dsn, `create schema orders; create table orders.legacy (id int); insert into orders.legacy values (7);
		create schema caskeleton; create table caskeleton.legacy (id int)`)
	require.Equal(t, afterCore("orders 00001_order.sql"), up(t, dsn, orders("1_order", createOrders)))
	require.Equal(t, 7, query[int](t, dsn, `select id from orders.legacy`))
}

// Two streams may share a schema, and each holds a lock of its own: one finds what the other has just made.
func TestASchemaThatAnotherStreamMakesMeanwhile(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn)
	other, err := connect(t, dsn).Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), `create schema orders`)
	require.NoError(t, err)
	errs := make(chan error, 1)
	m := migrator(t, dsn, nil, orders("1_order", createOrders))
	go func() {
		_, err := m.Up(t.Context())
		errs <- err
	}()
	watch := connect(t, dsn)
	require.Eventually(t, func() bool {
		var waits bool
		err := watch.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	}, 30*time.Second, time.Millisecond)
	require.NoError(t, other.Commit(t.Context()))
	require.NoError(t, <-errs)
}

func TestAStreamSwitchedOffAndOnKeepsItsData(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn)
	require.Equal(t, kitFiles[len(coreFiles):], up(t, dsn, Idempotency()))
	insertRecord(t, dsn)
	require.Empty(t, up(t, dsn))
	require.NoError(t, migrator(t, dsn, nil).Verify(t.Context()), "a stream that is off does not matter")
	require.Empty(t, up(t, dsn, Idempotency()))
	require.Equal(t, 1, query[int](t, dsn, `select count(*) from caskeleton.idempotency_record`))
}

func TestStreamsDoNotCross(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	a, b := orders("5_a", "create table orders.a (id int);\n"), orders("1_b", "create table orders.b (id int);\n")
	b.Name = "orders-archive"
	up(t, dsn, a)
	require.Equal(t, []string{"orders-archive 00001_b.sql"}, up(t, dsn, a, b), "version 1 of one stream is not below version 5 of another")
	require.Equal(t, 1, query[int](t, dsn, `select max(version_id) from caskeleton.migrations_orders_archive`))
}

func TestAMigratingRoleThatOwnsItsSchemasNeedsNoRightOnTheDatabase(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	role := newRole(t, dsn)
	execSQL(t, dsn, `create schema caskeleton authorization "`+role.name+`"; create schema orders authorization "`+role.name+`"`)
	require.Equal(t, afterCore("orders 00001_order.sql"), up(t, role.dsn, orders("1_order", createOrders)))
}
