package ops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgaudit"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/audit"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/ops"
	"caskeleton.dev/tx"
)

// server is a database in which operators work as the runtime role.
type server struct {
	owner  *pgx.Conn // for what a test looks at and arranges
	db     *postgres.DB
	guard  *idempotency.Guard
	runner *tx.Runner
}

func newServer(t *testing.T) *server {
	t.Helper()
	return newServerThrough(t, func(dsn string) string { return dsn })
}

// newServerThrough has operators reach the database by another address.
func newServerThrough(t *testing.T, through func(dsn string) string) *server {
	t.Helper()
	dsn := migrationstest.DSN(t, migrations.Idempotency())
	s := &server{owner: pgtest.Connect(t, dsn)}
	var err error
	s.db, err = postgres.Open(t.Context(), postgres.Config{DSN: through(migrationstest.RuntimeDSN(t, dsn, migrations.Idempotency())), MaxConns: 8}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.db.Close(context.WithoutCancel(t.Context()))) })
	s.runner, err = tx.NewRunner(s.db, nil)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("1", bytes.Repeat([]byte("s"), idempotency.MinSecret))
	require.NoError(t, err)
	s.guard, err = idempotency.New(pgidempotency.New(s.db), s.runner, keys, nil)
	require.NoError(t, err)
	return s
}

// desk is the operators' with a trail that d keeps, nil for the table.
func (s *server) desk(t *testing.T, d audit.Driver) *ops.Idempotency {
	t.Helper()
	if d == nil {
		d = pgaudit.NewActions(s.db)
	}
	trail, err := audit.NewTrail(d)
	require.NoError(t, err)
	o, err := ops.NewIdempotency(s.guard, trail, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return o
}

func (s *server) interrupted(t *testing.T) string {
	t.Helper()
	_, err := idempotency.DoExternal(t.Context(), s.guard, key("k"), fp, func(context.Context, *idempotency.Execution) (string, error) {
		return "", errors.New("the connection broke")
	})
	require.Error(t, err)
	var scope string
	require.NoError(t, s.owner.QueryRow(t.Context(), `select encode(scope, 'hex') from caskeleton.idempotency_record where state = 'ABANDONED'`).Scan(&scope))
	return scope
}

// state is what the table says of the one record, "" where it is gone, and how many actions were recorded.
func (s *server) state(t *testing.T) (state string, actions int) {
	t.Helper()
	require.NoError(t, s.owner.QueryRow(t.Context(), `select coalesce((select state from caskeleton.idempotency_record), ''), (select count(*) from caskeleton.operator_action)`).Scan(&state, &actions))
	return state, actions
}

func TestASettlementIsRecordedWithIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verdict ops.Verdict
		answer  ops.Stored
		state   string
	}{
		{ops.TookEffect, ops.Stored(`"paid"`), "COMPLETED"},
		{ops.Refused, ops.Stored(`"` + string(bytes.Repeat([]byte("x"), 9000)) + `"`), "FAILED"}, // beside the records
		{ops.NoEffect, nil, ""},
	} {
		s := newServer(t)
		scope := s.interrupted(t)
		_, err := s.desk(t, nil).Reconcile(t.Context(), scope, c.verdict, c.answer, act)
		require.NoError(t, err)
		state, actions := s.state(t)
		require.Equal(t, c.state, state)
		require.Equal(t, 1, actions)
		var row [6]string
		var late time.Duration
		require.NoError(t, s.owner.QueryRow(t.Context(), `select operator, verb, kind || ' ' || subject, reason, before ->> 'route', after ->> 'verdict', clock_timestamp() - acted_at
			from caskeleton.operator_action where changed = 1 and filter is null`).Scan(&row[0], &row[1], &row[2], &row[3], &row[4], &row[5], &late))
		require.Equal(t, [6]string{"ada", "idempotency.reconcile", "idempotency_record " + scope, "the provider says so", "POST /payments", string(c.verdict)}, row)
		require.GreaterOrEqual(t, late, time.Duration(0), "by the database's clock")
		_, err = s.desk(t, nil).Reconcile(t.Context(), scope, ops.NoEffect, nil, act)
		require.Error(t, err)
		_, actions = s.state(t)
		require.Equal(t, 1, actions, "what was refused is not recorded")
	}
}

// TestNothingIsSettledThatCannotBeRecorded: the table refuses the row, after the record was changed in the same transaction.
func TestNothingIsSettledThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	scope := s.interrupted(t)
	_, err := s.owner.Exec(t.Context(), `alter table caskeleton.operator_action add constraint closed check (verb <> 'idempotency.reconcile') not valid`)
	require.NoError(t, err)
	for v, answer := range map[ops.Verdict]ops.Stored{ops.TookEffect: ops.Stored(`"paid"`), ops.NoEffect: nil} {
		_, err = s.desk(t, nil).Reconcile(t.Context(), scope, v, answer, act)
		require.ErrorContains(t, err, "audit: idempotency.reconcile was not recorded")
		state, actions := s.state(t)
		require.Equal(t, "ABANDONED", state)
		require.Zero(t, actions)
	}
	_, err = s.owner.Exec(t.Context(), `alter table caskeleton.operator_action drop constraint closed`)
	require.NoError(t, err)
	_, err = s.desk(t, nil).Reconcile(t.Context(), scope, ops.NoEffect, nil, act)
	require.NoError(t, err)
}

// held records, says so, and waits before it lets its transaction go on.
type held struct {
	audit.Driver

	recorded chan struct{}
	goOn     chan struct{}
}

func (h held) Record(ctx context.Context, t *tx.Tx, a audit.Action) error {
	err := h.Driver.Record(ctx, t, a)
	close(h.recorded)
	select {
	case <-h.goOn:
	case <-ctx.Done(): // the test has failed
	}
	return err
}

// TestTwoOperatorsSettleOneRecord: the second one waits for the first, is told that it is too late, and leaves no trace.
func TestTwoOperatorsSettleOneRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first ops.Verdict
		state string
	}{{ops.TookEffect, "COMPLETED"}, {ops.NoEffect, ""}} {
		s := newServer(t)
		scope := s.interrupted(t)
		h := held{pgaudit.NewActions(s.db), make(chan struct{}), make(chan struct{})}
		ended := make(chan error, 2)
		settle := func(o *ops.Idempotency, v ops.Verdict, operator string) {
			answer := ops.Stored(`"by ` + operator + `"`)
			if v == ops.NoEffect {
				answer = nil
			}
			_, err := o.Reconcile(t.Context(), scope, v, answer, ops.Act{Operator: operator, Reason: "r"})
			ended <- err
		}
		first, second := s.desk(t, h), s.desk(t, nil)
		go settle(first, c.first, "ada")
		<-h.recorded
		go settle(second, ops.TookEffect, "bob")
		require.Eventually(t, func() bool {
			var waits bool
			err := s.owner.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits)
			return err == nil && waits
		}, 30*time.Second, time.Millisecond)
		state, actions := s.state(t)
		require.Equal(t, "ABANDONED", state)
		require.Zero(t, actions, "not before the commit")
		close(h.goOn)
		errs := []error{<-ended, <-ended}
		require.ErrorIs(t, errors.Join(errs...), idempotency.ErrStale)
		require.True(t, errs[0] == nil || errs[1] == nil, "%v", errs)
		state, actions = s.state(t)
		require.Equal(t, c.state, state)
		require.Equal(t, 1, actions)
		var who string
		require.NoError(t, s.owner.QueryRow(t.Context(), `select operator from caskeleton.operator_action`).Scan(&who))
		require.Equal(t, "ada", who)
	}
}

// TestManyOperatorsSettleOneRecord at once: one of them does.
func TestManyOperatorsSettleOneRecord(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	scope := s.interrupted(t)
	const operators = 6
	start, ended := make(chan struct{}), make(chan string, operators)
	for i := range operators {
		name := fmt.Sprint("operator ", i)
		o := s.desk(t, nil)
		go func() {
			<-start
			_, err := o.Reconcile(t.Context(), scope, ops.TookEffect, ops.Stored(`"`+name+`"`), ops.Act{Operator: name, Reason: "r"})
			if _, late := errors.AsType[*ops.InvalidError](err); err != nil && !late && !errors.Is(err, idempotency.ErrStale) {
				name = err.Error()
			} else if err != nil {
				name = ""
			}
			ended <- name
		}()
	}
	close(start)
	var settled []string
	for range operators {
		if name := <-ended; name != "" {
			settled = append(settled, name)
		}
	}
	require.Len(t, settled, 1)
	var who, answer string
	require.NoError(t, s.owner.QueryRow(t.Context(), `select a.operator, convert_from(r.payload, 'UTF8') from caskeleton.operator_action a, caskeleton.idempotency_record r`).Scan(&who, &answer))
	require.Equal(t, settled[0], who)
	require.Equal(t, `"`+who+`"`, answer)
}

// TestACommitWithoutAnAnswer is looked up: the operator is told what happened, and what happened is all of it or nothing.
func TestACommitWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for mode, done := range map[proxytest.Mode]bool{proxytest.Before: false, proxytest.After: true, proxytest.OnAnswer: true} {
		var proxy *proxytest.Proxy
		s := newServerThrough(t, func(dsn string) string {
			proxy = proxytest.New(t, dsn)
			return proxy.DSN()
		})
		scope := s.interrupted(t)
		cut := proxy.Break(mode, "commit\x00")
		_, err := s.desk(t, nil).Reconcile(t.Context(), scope, ops.NoEffect, nil, act)
		<-cut.Struck()
		state, actions := s.state(t)
		if done {
			require.NoError(t, err, "cut %s", mode)
			require.Empty(t, state)
			require.Equal(t, 1, actions)
		} else {
			require.Error(t, err, "cut %s", mode)
			require.Equal(t, "ABANDONED", state)
			require.Zero(t, actions)
		}
	}
}

func TestARetirementIsRecordedWithIt(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	require.NoError(t, s.guard.Enroll(t.Context()))
	o := s.desk(t, nil)
	require.NoError(t, o.RetireKey(t.Context(), "1", act))
	require.Error(t, o.RetireKey(t.Context(), "1", act))
	var versions, actions int
	require.NoError(t, s.owner.QueryRow(t.Context(), `select (select count(*) from caskeleton.idempotency_key), (select count(*) from caskeleton.operator_action where kind = 'idempotency_key' and subject = '1')`).
		Scan(&versions, &actions))
	require.Zero(t, versions)
	require.Equal(t, 1, actions)

	require.NoError(t, s.guard.Enroll(t.Context()))
	_, err := s.owner.Exec(t.Context(), `revoke insert on caskeleton.operator_action from public; revoke all on caskeleton.operator_action from `+pgx.Identifier{s.user(t)}.Sanitize())
	require.NoError(t, err)
	require.ErrorIs(t, o.RetireKey(t.Context(), "1", act), fault.DBAccessDenied)
	require.NoError(t, s.owner.QueryRow(t.Context(), `select count(*) from caskeleton.idempotency_key`).Scan(&versions))
	require.Equal(t, 1, versions)
}

func (s *server) user(t *testing.T) (name string) {
	t.Helper()
	require.NoError(t, s.db.QueryRow(t.Context(), `select current_user`).Scan(&name))
	return name
}
