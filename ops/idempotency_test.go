package ops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/audit"
	"caskeleton.dev/fault"
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
	trail *audit.Trail
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
	trail, err := audit.NewTrail(memory.NewActions())
	require.NoError(t, err)
	log := &bytes.Buffer{}
	o, err := ops.NewIdempotency(guard, trail, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	return desk{o, guard, trail, log}
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
	shown, err := d.ShowKey(t.Context(), key(client))
	require.NoError(t, err)
	require.Equal(t, idempotency.Abandoned, shown.Entry.State)
	require.Empty(t, shown.Actions)
	return shown.Scope.String()
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
		d.recorded(t, scope, was, c.verdict)
	}
}

// recorded fails unless the settlement of a record, and it alone, is kept with all that tells what it was.
func (d desk) recorded(t *testing.T, scope string, was idempotency.Entry, v ops.Verdict) {
	t.Helper()
	actions, err := d.trail.Of(t.Context(), "idempotency_record", scope, 10)
	require.NoError(t, err)
	require.Len(t, actions, 1)
	a := actions[0]
	require.Equal(t, []any{"ada", "the provider says so", "idempotency.reconcile", int64(1)}, []any{a.Operator, a.Reason, a.Verb, a.Changed})
	require.Nil(t, a.Filter)
	before, err := json.Marshal(map[string]any{
		"state": "ABANDONED", "tenant": "acme", "route": "POST /payments", "owner": was.Owner, "attempt": 1, "revision": was.Revision, "created_at": was.Created,
	})
	require.NoError(t, err)
	require.JSONEq(t, string(before), string(a.Before))
	after := map[ops.Verdict]string{
		ops.TookEffect: `{"verdict":"completed","state":"COMPLETED","answer_bytes":6}`, ops.Refused: `{"verdict":"rejected","state":"FAILED","answer_bytes":15}`, ops.NoEffect: `{"verdict":"no-effect"}`,
	}
	require.JSONEq(t, after[v], string(a.After), "answers are not kept twice")
}

func TestReconcileRefuses(t *testing.T) {
	d := newDesk(t)
	open := d.interrupted(t, "open")
	_, err := d.pay(t, "done", nil)
	require.NoError(t, err)
	finished, err := d.ShowKey(t.Context(), key("done"))
	require.NoError(t, err)
	done := finished.Scope
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
		{done.String(), ops.NoEffect, nil, act, "scope", "is COMPLETED"},
		{open, "", nil, act, "verdict", `is ""`},
		{open, "done", answer, act, "verdict", `is "done"`},
		{open, ops.TookEffect, nil, act, "answer", "is missing"},
		{open, ops.Refused, nil, act, "answer", "is missing"},
		{open, ops.NoEffect, answer, act, "answer", "without effect"},
		{open, ops.TookEffect, ops.Stored("http {}"), act, "answer", "is not of the form"},
		{open, ops.NoEffect, nil, ops.Act{Reason: "r"}, "operator", "is missing"},
		{open, ops.NoEffect, nil, ops.Act{Operator: " ", Reason: "r"}, "operator", "is missing"},
		{open, ops.NoEffect, nil, ops.Act{Operator: "ada"}, "reason", "is missing"},
		{open, ops.NoEffect, nil, ops.Act{Operator: "ada", Reason: strings.Repeat("r", 501)}, "reason", "501 bytes"},
		{open, ops.NoEffect, nil, ops.Act{Operator: "ada", Reason: "two\nlines"}, "reason", "cannot be printed"},
		{open, ops.NoEffect, nil, ops.Act{Operator: "\xff", Reason: "r"}, "operator", "cannot be printed"},
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
	left, err := d.Abandoned(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, left.Entries, 1)
	for _, scope := range []string{open, done.String()} {
		actions, err := d.trail.Of(t.Context(), "idempotency_record", scope, 10)
		require.NoError(t, err)
		require.Empty(t, actions, "nothing was done")
	}
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
	shown, err := d.Show(t.Context(), scope)
	require.NoError(t, err)
	require.Equal(t, "POST /payments", shown.Entry.Route)
	require.Equal(t, scope, shown.Scope.String())
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
	_, err = d.ShowKey(t.Context(), idempotency.Key{Method: "POST", Route: "/payments", Client: "ä"})
	require.ErrorIs(t, err, fault.IdempotencyKeyInvalid)
}

// What operators did to a record is shown with it, and without it once it is gone.
func TestShowTellsWhatOperatorsDid(t *testing.T) {
	d := newDesk(t)
	scope := d.interrupted(t, "k")
	settle := func(v ops.Verdict, answer ops.Stored, reason string) {
		_, err := d.Reconcile(t.Context(), scope, v, answer, ops.Act{Operator: "ada", Reason: reason})
		require.NoError(t, err)
	}
	looks := func(gone bool, reasons ...string) {
		byScope, err := d.Show(t.Context(), scope)
		require.NoError(t, err)
		byKey, err := d.ShowKey(t.Context(), key("k"))
		require.NoError(t, err)
		require.Equal(t, byScope, byKey)
		require.Equal(t, gone, byScope.Entry == nil)
		require.Equal(t, scope, byScope.Scope.String())
		var got []string
		for _, a := range byScope.Actions {
			got = append(got, a.Reason)
		}
		require.Equal(t, reasons, got)
	}
	settle(ops.NoEffect, nil, "first")
	looks(true, "first")
	_, err := d.pay(t, "k", errors.New("the connection broke again"))
	require.Error(t, err)
	settle(ops.TookEffect, ops.Stored(`"paid"`), "second")
	looks(false, "second", "first")
}

func TestAnswer(t *testing.T) {
	d := newDesk(t)
	_, err := d.pay(t, "done", nil)
	require.NoError(t, err)
	shown, err := d.ShowKey(t.Context(), key("done"))
	require.NoError(t, err)
	payload, err := d.Answer(t.Context(), shown.Scope)
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
	var want []string
	for _, client := range []string{"a", "b", "c", "d"} {
		want = append(want, d.interrupted(t, client))
	}
	_, err := d.pay(t, "done", nil)
	require.NoError(t, err)
	for limit, pages := range map[int]int{1: 4, 2: 2, 3: 2, 4: 1, 5: 1} {
		var got []string
		after := ""
		for range pages {
			page, err := d.Abandoned(t.Context(), after, limit)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page.Entries), limit)
			for _, e := range page.Entries {
				got = append(got, e.Scope.String())
			}
			after = page.Next
		}
		require.Empty(t, after, "the end is known without a page that is empty")
		require.Equal(t, want, got, "pages of %d", limit)
	}
	for _, limit := range []int{-1, 0, ops.MaxList + 1} {
		_, err := d.Abandoned(t.Context(), "", limit)
		require.ErrorContains(t, err, "limit is ")
	}
	_, err = d.Abandoned(t.Context(), "the end", 1)
	require.EqualError(t, err, `after is "the end"`)
}

// Between two pages the last one shown is settled, another one too, and a third is abandoned: what stays is seen once.
func TestAPageGoesOnWhateverHappens(t *testing.T) {
	d := newDesk(t)
	a, b, c, e := d.interrupted(t, "a"), d.interrupted(t, "b"), d.interrupted(t, "c"), d.interrupted(t, "d")
	page, err := d.Abandoned(t.Context(), "", 2)
	require.NoError(t, err)
	require.Equal(t, []string{a, b}, []string{page.Entries[0].Scope.String(), page.Entries[1].Scope.String()})
	for _, scope := range []string{b, c} {
		_, err = d.Reconcile(t.Context(), scope, ops.NoEffect, nil, act)
		require.NoError(t, err)
	}
	late := d.interrupted(t, "e")
	page, err = d.Abandoned(t.Context(), page.Next, 2)
	require.NoError(t, err)
	require.Equal(t, []string{e, late}, []string{page.Entries[0].Scope.String(), page.Entries[1].Scope.String()})
	require.Empty(t, page.Next)
}

func TestRetireKey(t *testing.T) {
	d := newDesk(t)
	require.NoError(t, d.guard.Enroll(t.Context()))
	scope := d.interrupted(t, "k")
	for version, want := range map[string]string{"": "version is missing", "1": `version is "1", which is not known, or which records are of`, "2": `version is "2", which is`} {
		require.ErrorContains(t, d.RetireKey(t.Context(), version, act), want)
	}
	require.EqualError(t, d.RetireKey(t.Context(), "1", ops.Act{Operator: "ada"}), "reason is missing")
	require.Empty(t, d.log.String())
	_, err := d.Reconcile(t.Context(), scope, ops.NoEffect, nil, act)
	require.NoError(t, err)
	require.NoError(t, d.RetireKey(t.Context(), "1", act))
	require.Contains(t, d.log.String(), `msg="idempotency key version retired" operator=ada reason="the provider says so" version=1`)
	require.ErrorContains(t, d.RetireKey(t.Context(), "1", act), "is not known")
	actions, err := d.trail.Of(t.Context(), "idempotency_key", "1", 10)
	require.NoError(t, err)
	require.Len(t, actions, 1, "what was refused is not recorded")
	require.Equal(t, audit.Action{Operator: "ada", Verb: "idempotency.retire", Kind: "idempotency_key", Subject: "1", Reason: "the provider says so", Changed: 1}, actions[0].Action)
}

// mute keeps nothing.
type mute struct{ *memory.Actions }

var errMute = errors.New("the trail is full")

func (mute) Record(context.Context, *tx.Tx, audit.Action) error { return errMute }

// TestWhatCannotBeRecordedIsNotDone: neither a settlement nor a retirement.
func TestWhatCannotBeRecordedIsNotDone(t *testing.T) {
	d := newDesk(t)
	require.NoError(t, d.guard.Enroll(t.Context()))
	trail, err := audit.NewTrail(mute{memory.NewActions()})
	require.NoError(t, err)
	o, err := ops.NewIdempotency(d.guard, trail, slog.New(slog.NewTextHandler(d.log, nil)))
	require.NoError(t, err)
	scope := d.interrupted(t, "k")
	_, err = o.Reconcile(t.Context(), scope, ops.TookEffect, ops.Stored(`1`), act)
	require.ErrorIs(t, err, errMute)
	shown, err := d.Show(t.Context(), scope)
	require.NoError(t, err)
	require.Equal(t, idempotency.Abandoned, shown.Entry.State)
	_, err = d.Reconcile(t.Context(), scope, ops.NoEffect, nil, act)
	require.NoError(t, err)
	d.log.Reset()
	require.ErrorIs(t, o.RetireKey(t.Context(), "1", act), errMute)
	require.NoError(t, d.RetireKey(t.Context(), "1", act), "it was still known")
	require.NotContains(t, d.log.String(), "reconciled")
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
	log := slog.New(slog.DiscardHandler)
	for _, missing := range []func() (*ops.Idempotency, error){
		func() (*ops.Idempotency, error) { return ops.NewIdempotency(nil, d.trail, log) },
		func() (*ops.Idempotency, error) { return ops.NewIdempotency(d.guard, nil, log) },
		func() (*ops.Idempotency, error) { return ops.NewIdempotency(d.guard, d.trail, nil) },
	} {
		_, err := missing()
		require.EqualError(t, err, "ops: a guard, a trail and a logger are required")
	}
}
