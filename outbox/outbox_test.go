package outbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

func TestAppendFillsWhatIsMissingInCopies(t *testing.T) {
	ob, r, runner := newOutbox(t, nil)
	given := placed("1")
	given.Sequence, given.RecordedAt = 9, time.Now()
	before := given
	require.NoError(t, record(t.Context(), ob, runner, given, placed("2")))
	require.Equal(t, before, given)
	require.Equal(t, 1, r.calls, "one call for all")
	require.Len(t, r.appended, 2)
	require.NotEqual(t, r.appended[0].ID, r.appended[1].ID)
	e := r.appended[0]
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, e.ID)
	e.ID = ""
	require.Equal(t, outbox.Event{
		Type: "order.placed", SchemaVersion: 1, AggregateType: "order", AggregateID: "1", Payload: []byte(`{}`), ContentType: "application/json",
		Headers: map[string]string{},
	}, e)
}

func TestAppendKeepsWhatIsSet(t *testing.T) {
	ob, r, runner := newOutbox(t, nil)
	e := outbox.Event{
		ID: "0197fbc0-0000-4000-8000-000000000000", Type: "t", SchemaVersion: 2, AggregateType: "a", AggregateID: "i", AggregateVersion: 3,
		Payload: []byte{0}, ContentType: "text/plain", Headers: map[string]string{"k": "v"}, OccurredAt: time.Unix(1, 0),
	}
	require.NoError(t, record(t.Context(), ob, runner, e))
	require.Equal(t, []outbox.Event{e}, r.appended)
	r.appended[0].Headers["k"] = "changed"
	require.Equal(t, "v", e.Headers["k"], "the caller's map is its own")
}

func TestIdsFollowTheClock(t *testing.T) {
	ob, r, runner := newOutbox(t, nil)
	from := time.Now().UnixMilli()
	var events []outbox.Event
	for range 1000 {
		events = append(events, placed("1"))
	}
	require.NoError(t, record(t.Context(), ob, runner, events...))
	to := time.Now().UnixMilli()
	seen := map[string]bool{}
	for _, e := range r.appended {
		require.False(t, seen[e.ID])
		seen[e.ID] = true
		var ms int64
		for _, c := range e.ID[:8] + e.ID[9:13] { // RFC 9562 section 5.7: the first 48 bits
			digit := int64(c - '0')
			if c >= 'a' {
				digit = int64(c-'a') + 10
			}
			ms = ms<<4 | digit
		}
		require.GreaterOrEqual(t, ms, from)
		require.LessOrEqual(t, ms, to)
	}
}

func TestTheTraceContextIsCarriedAlong(t *testing.T) {
	ob, r, runner := newOutbox(t, nil)
	state, err := trace.ParseTraceState("vendor=1")
	require.NoError(t, err)
	cfg := trace.SpanContextConfig{TraceID: trace.TraceID{0x0a, 15: 0xff}, SpanID: trace.SpanID{0x01, 7: 0x02}, TraceFlags: 0xff, TraceState: state}
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(cfg))
	own := placed("2")
	own.Headers = map[string]string{"traceparent": "mine", "k": "v"}
	require.NoError(t, record(ctx, ob, runner, placed("1"), own))
	require.Equal(t, map[string]string{"traceparent": "00-0a0000000000000000000000000000ff-0100000000000002-01", "tracestate": "vendor=1"}, r.appended[0].Headers)
	require.Equal(t, own.Headers, r.appended[1].Headers, "an event's own trace stays")

	cfg.TraceFlags, cfg.TraceState = 0, trace.TraceState{}
	ctx = trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(cfg))
	require.NoError(t, record(ctx, ob, runner, placed("3")))
	require.Equal(t, map[string]string{"traceparent": "00-0a0000000000000000000000000000ff-0100000000000002-00"}, r.appended[2].Headers)
}

func TestAppendNeedsAnOpenWriteTransaction(t *testing.T) {
	ob, r, runner := newOutbox(t, nil)
	var ended *tx.Tx
	require.NoError(t, runner.InWrite(t.Context(), func(_ context.Context, t *tx.Tx) error { ended = t; return nil }))
	require.ErrorIs(t, ob.Append(t.Context(), ended, placed("1")), tx.ErrDone)
	require.ErrorContains(t, ob.Append(t.Context(), nil, placed("1")), "no transaction")
	readOnly := func(ctx context.Context, tr *tx.Tx) error { return ob.Append(ctx, tr, placed("1")) }
	require.ErrorIs(t, runner.InReadOnly(t.Context(), readOnly), fault.TXReadOnly)
	require.Error(t, runner.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		err := runner.InReadOnly(ctx, readOnly)
		require.ErrorIs(t, err, fault.TXReadOnly, "inside a write transaction too")
		return err
	}))
	require.Zero(t, r.calls)
	require.NoError(t, record(t.Context(), ob, runner))
	require.Zero(t, r.calls, "nothing to record")
	require.Empty(t, ob.Bell().C())
}

func TestTheBellRingsForWhatWasCommitted(t *testing.T) {
	ob, r, runner := newOutbox(t, nil)
	require.NoError(t, runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		if err := ob.Append(ctx, tr, placed("1"), placed("2"), placed("1")); err != nil {
			return err
		}
		require.Empty(t, ob.Bell().C(), "not before the commit")
		_ = tr.Savepoint(ctx, func(ctx context.Context) error {
			require.NoError(t, ob.Append(ctx, tr, placed("undone")))
			return errors.New("undo")
		})
		return nil
	}))
	require.Len(t, ob.Bell().C(), 1)
	<-ob.Bell().C()
	require.Equal(t, []outbox.Lane{{AggregateType: "order", AggregateID: "1"}, {AggregateType: "order", AggregateID: "2"}}, ob.Bell().Drain())

	r.failing = fault.DBCommitUnknown
	require.Error(t, record(t.Context(), ob, runner, placed("1")))
	r.failing, r.fail = nil, fault.DBUnavailable
	require.ErrorIs(t, record(t.Context(), ob, runner, placed("1")), fault.DBUnavailable)
	require.Empty(t, ob.Bell().C())
	require.Empty(t, ob.Bell().Drain())
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	_, err := outbox.New(nil, nil)
	require.ErrorContains(t, err, "driver is required")
	for field, o := range map[string]outbox.Options{
		"PayloadLimit is -1":       {PayloadLimit: -1},
		"PayloadLimit is 16777217": {PayloadLimit: 16<<20 + 1},
		"HeadersLimit is -1":       {HeadersLimit: -1},
		"HeadersLimit is 65537":    {HeadersLimit: 64<<10 + 1},
	} {
		_, err = outbox.New(&recorder{}, &o)
		require.ErrorContains(t, err, field)
	}
}
