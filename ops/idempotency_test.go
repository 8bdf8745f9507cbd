package ops_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/ops"
	"caskeleton.dev/tx"
)

var (
	act = ops.Act{Operator: "ada", Reason: "the provider says so"}
	fp  = idempotency.Fingerprint{1}
)

func key(client string) idempotency.Key {
	return idempotency.Key{Tenant: "acme", Principal: "bob", Method: "POST", Route: "/payments", Client: client}
}

type desk struct {
	*ops.Idempotency

	guard *idempotency.Guard
	log   *bytes.Buffer
}

func newDesk(t *testing.T) desk {
	t.Helper()
	runner, err := tx.NewRunner(memory.Transactions{}, nil)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("1", bytes.Repeat([]byte("s"), idempotency.MinSecret))
	require.NoError(t, err)
	guard, err := idempotency.New(memory.NewRecords(nil), runner, keys, nil)
	require.NoError(t, err)
	log := &bytes.Buffer{}
	o, err := ops.NewIdempotency(guard, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	return desk{o, guard, log}
}

// pay runs an operation that ends with err, and returns what repeats get.
func (d desk) pay(t *testing.T, client string, err error) (idempotency.Outcome[string], error) {
	t.Helper()
	return idempotency.DoExternal(t.Context(), d.guard, key(client), fp, func(context.Context, *idempotency.Execution) (string, error) { return "ran", err })
}

// interrupted returns the scope of an operation that nobody knows the end of.
func (d desk) interrupted(t *testing.T, client string) string {
	t.Helper()
	_, err := d.pay(t, client, errors.New("the connection broke"))
	require.Error(t, err)
	e, err := d.ShowKey(t.Context(), key(client))
	require.NoError(t, err)
	require.Equal(t, idempotency.Abandoned, e.State)
	return e.Scope.String()
}

func TestReconcile(t *testing.T) {
	for _, c := range []struct {
		verdict ops.Verdict
		answer  ops.Stored
		want    idempotency.Outcome[string]
	}{
		{ops.TookEffect, ops.Stored(`"paid"`), idempotency.Outcome[string]{Value: "paid", Replayed: true}},
		{ops.Refused, ops.Stored(`"card declined"`), idempotency.Outcome[string]{Value: "card declined", Replayed: true, Rejected: true}},
		{ops.NoEffect, nil, idempotency.Outcome[string]{Value: "ran"}},
	} {
		d := newDesk(t)
		scope := d.interrupted(t, "k")
		was, err := d.Reconcile(t.Context(), scope, c.verdict, c.answer, act)
		require.NoError(t, err)
		require.Equal(t, idempotency.Abandoned, was.State)
		got, err := d.pay(t, "k", nil)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		for _, says := range []string{"operator=ada", `reason="the provider says so"`, "verdict=" + string(c.verdict), "scope=" + scope, `route="POST /payments"`, "tenant=acme"} {
			require.Contains(t, d.log.String(), says)
		}
		require.NotContains(t, d.log.String(), "declined", "answers are not logged")
	}
}

func TestReconcileRefuses(t *testing.T) {
	d := newDesk(t)
	open := d.interrupted(t, "open")
	_, err := d.pay(t, "done", nil)
	require.NoError(t, err)
	done, err := d.ShowKey(t.Context(), key("done"))
	require.NoError(t, err)
	answer := ops.Stored(`1`)
	for _, c := range []struct {
		scope   string
		verdict ops.Verdict
		answer  ops.Stored
		act     ops.Act
		field   string
		problem string
	}{
		{"abc", ops.NoEffect, nil, act, "scope", `is "abc"`},
		{done.Scope.String(), ops.NoEffect, nil, act, "scope", "is COMPLETED"},
		{open, "", nil, act, "verdict", `is ""`},
		{open, "done", answer, act, "verdict", `is "done"`},
		{open, ops.TookEffect, nil, act, "answer", "is missing"},
		{open, ops.Refused, nil, act, "answer", "is missing"},
		{open, ops.NoEffect, answer, act, "answer", "without effect"},
		{open, ops.NoEffect, nil, ops.Act{Reason: "r"}, "operator", "is missing"},
		{open, ops.NoEffect, nil, ops.Act{Operator: " ", Reason: "r"}, "operator", "is missing"},
		{open, ops.NoEffect, nil, ops.Act{Operator: "ada"}, "reason", "is missing"},
		{open, ops.NoEffect, nil, ops.Act{Operator: "ada", Reason: strings.Repeat("r", 501)}, "reason", "501 bytes"},
		{open, ops.NoEffect, nil, ops.Act{Operator: "ada", Reason: "two\nlines"}, "reason", "cannot be printed"},
	} {
		_, err := d.Reconcile(t.Context(), c.scope, c.verdict, c.answer, c.act)
		refused, ok := errors.AsType[*ops.InvalidError](err)
		require.True(t, ok, "%+v: %v", c, err)
		require.Equal(t, c.field, refused.Field)
		require.Contains(t, refused.Problem, c.problem)
		require.NotEmpty(t, refused.Fix)
	}
	_, err = d.Reconcile(t.Context(), idempotency.Scope{}.String(), ops.NoEffect, nil, act)
	require.ErrorIs(t, err, idempotency.ErrNoRecord)
	require.Empty(t, d.log.String(), "nothing was changed")
	left, err := d.Abandoned(t.Context(), idempotency.Cursor{}, 10)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// What runs is not settled, even by an operator.
func TestReconcileLeavesWhatRuns(t *testing.T) {
	d := newDesk(t)
	_, err := idempotency.DoExternal(t.Context(), d.guard, key("k"), fp, func(ctx context.Context, e *idempotency.Execution) (int, error) {
		require.NoError(t, e.Renew(ctx, time.Minute))
		_, err := d.Reconcile(ctx, e.Key(), ops.NoEffect, nil, act)
		require.EqualError(t, err, "scope has a record that is EXECUTING")
		return 1, nil
	})
	require.NoError(t, err)
}

func TestShow(t *testing.T) {
	d := newDesk(t)
	scope := d.interrupted(t, "k")
	e, err := d.Show(t.Context(), scope)
	require.NoError(t, err)
	require.Equal(t, "POST /payments", e.Route)
	_, err = d.Show(t.Context(), "k")
	require.EqualError(t, err, `scope is "k"`)
	_, err = d.ShowKey(t.Context(), key("other"))
	require.ErrorIs(t, err, idempotency.ErrNoRecord)
	for field, k := range map[string]idempotency.Key{
		"method": {Route: "/payments", Client: "k"}, "route": {Method: "POST", Client: "k"}, "key": {Method: "POST", Route: "/payments"},
	} {
		_, err = d.ShowKey(t.Context(), k)
		require.EqualError(t, err, field+" is missing")
	}
}

func TestAnswer(t *testing.T) {
	d := newDesk(t)
	_, err := d.pay(t, "done", nil)
	require.NoError(t, err)
	e, err := d.ShowKey(t.Context(), key("done"))
	require.NoError(t, err)
	payload, err := d.Answer(t.Context(), e.Scope)
	require.NoError(t, err)
	require.JSONEq(t, `"ran"`, string(payload))
	open, err := idempotency.ParseScope(d.interrupted(t, "open"))
	require.NoError(t, err)
	for _, s := range []idempotency.Scope{open, {}} {
		_, err := d.Answer(t.Context(), s)
		require.ErrorIs(t, err, idempotency.ErrNoRecord)
	}
}

func TestAbandonedIsBoundedAndGoesOn(t *testing.T) {
	d := newDesk(t)
	want := map[string]bool{d.interrupted(t, "a"): true, d.interrupted(t, "b"): true, d.interrupted(t, "c"): true}
	_, err := d.pay(t, "done", nil)
	require.NoError(t, err)
	got := map[string]bool{}
	for after := (idempotency.Cursor{}); ; {
		page, err := d.Abandoned(t.Context(), after, 2)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 2)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			after = e.Cursor()
			got[e.Scope.String()] = true
		}
	}
	require.Equal(t, want, got)
	for _, limit := range []int{-1, 0, ops.MaxList + 1} {
		_, err := d.Abandoned(t.Context(), idempotency.Cursor{}, limit)
		require.ErrorContains(t, err, "limit is ")
	}
}

func TestJSONAnswer(t *testing.T) {
	a, err := ops.JSONAnswer([]byte(`{"id":1}`))
	require.NoError(t, err)
	require.Equal(t, ops.Stored(`{"id":1}`), a)
	for _, bad := range []string{"", "paid", "{"} {
		_, err := ops.JSONAnswer([]byte(bad))
		require.EqualError(t, err, "answer is no JSON")
	}
}

func TestNewIdempotencyNeedsAll(t *testing.T) {
	d := newDesk(t)
	_, err := ops.NewIdempotency(nil, slog.New(slog.DiscardHandler))
	require.Error(t, err)
	_, err = ops.NewIdempotency(d.guard, nil)
	require.Error(t, err)
}
