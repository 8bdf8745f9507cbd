package outbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
)

func TestBadEventsAreRefusedBeforeTheDatabase(t *testing.T) {
	long := strings.Repeat("x", 256)
	for name, c := range map[string]struct {
		spoil         func(*outbox.Event)
		path, problem string
	}{
		"no type":                 {func(e *outbox.Event) { e.Type = "" }, "type", "is missing"},
		"no aggregate type":       {func(e *outbox.Event) { e.AggregateType = "" }, "aggregate_type", "is missing"},
		"no aggregate id":         {func(e *outbox.Event) { e.AggregateID = "" }, "aggregate_id", "is missing"},
		"NUL in the type":         {func(e *outbox.Event) { e.Type = "a\x00" }, "type", "NUL byte at position 2"},
		"NUL in the agg. type":    {func(e *outbox.Event) { e.AggregateType = "\x00" }, "aggregate_type", "NUL byte at position 1"},
		"NUL in the agg. id":      {func(e *outbox.Event) { e.AggregateID = "\x00" }, "aggregate_id", "NUL byte at position 1"},
		"NUL in the content type": {func(e *outbox.Event) { e.ContentType = "\x00" }, "content_type", "NUL byte at position 1"},
		"NUL in a header":         {func(e *outbox.Event) { e.Headers = map[string]string{"k": "v\x00"} }, "headers.k", "NUL byte at position 2"},
		"type not UTF-8":          {func(e *outbox.Event) { e.Type = "\xff" }, "type", "UTF-8"},
		"agg. type not UTF-8":     {func(e *outbox.Event) { e.AggregateType = "\xff" }, "aggregate_type", "UTF-8"},
		"agg. id not UTF-8":       {func(e *outbox.Event) { e.AggregateID = "\xff" }, "aggregate_id", "UTF-8"},
		"content type not UTF-8":  {func(e *outbox.Event) { e.ContentType = "\xff" }, "content_type", "UTF-8"},
		"header not UTF-8":        {func(e *outbox.Event) { e.Headers = map[string]string{"k": "\xff"} }, "headers.k", "UTF-8"},
		"CR in a header":          {func(e *outbox.Event) { e.Headers = map[string]string{"k": "a\r"} }, "headers.k", "line break"},
		"LF in a header":          {func(e *outbox.Event) { e.Headers = map[string]string{"k": "a\n"} }, "headers.k", "line break"},
		"empty header name":       {func(e *outbox.Event) { e.Headers = map[string]string{"": "v"} }, "headers", "a token"},
		"colon in a header name":  {func(e *outbox.Event) { e.Headers = map[string]string{"a:b": "v"} }, "headers", "a token"},
		"long type":               {func(e *outbox.Event) { e.Type = long }, "type", "256 bytes; at most 255"},
		"long aggregate type":     {func(e *outbox.Event) { e.AggregateType = long }, "aggregate_type", "256 bytes; at most 255"},
		"long aggregate id":       {func(e *outbox.Event) { e.AggregateID = long }, "aggregate_id", "256 bytes; at most 255"},
		"long content type":       {func(e *outbox.Event) { e.ContentType = long }, "content_type", "256 bytes; at most 255"},
		"schema version below":    {func(e *outbox.Event) { e.SchemaVersion = -1 }, "schema_version", "out of range"},
		"schema version above":    {func(e *outbox.Event) { e.SchemaVersion = 1 << 31 }, "schema_version", "out of range"},
		"aggregate version":       {func(e *outbox.Event) { e.AggregateVersion = -1 }, "aggregate_version", "negative"},
		"occurred too early":      {func(e *outbox.Event) { e.OccurredAt = time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC) }, "occurred_at", "years 1 to 9999"},
		"occurred too late": {
			func(e *outbox.Event) { e.OccurredAt = time.Date(9999, 12, 31, 23, 59, 0, 0, time.FixedZone("", -3600)) }, "occurred_at", "years 1 to 9999",
		},
		"payload":              {func(e *outbox.Event) { e.Payload = make([]byte, 1<<20+1) }, "payload", "1048577 bytes; at most 1048576"},
		"headers":              {func(e *outbox.Event) { e.Headers = map[string]string{"k": strings.Repeat("v", 16<<10)} }, "headers", "16385 bytes; at most 16384"},
		"id upper case":        {func(e *outbox.Event) { e.ID = "0197FBC0-0000-7000-8000-000000000000" }, "id", "canonical"},
		"id without dashes":    {func(e *outbox.Event) { e.ID = "0197fbc0000070008000000000000000" }, "id", "canonical"},
		"id with other dashes": {func(e *outbox.Event) { e.ID = "0197fbc0-0000-7000-80000-00000000000" }, "id", "canonical"},
		"id in braces":         {func(e *outbox.Event) { e.ID = "{0197fbc0-0000-7000-8000-00000000000}" }, "id", "canonical"},
		"id with a dash more":  {func(e *outbox.Event) { e.ID = "0197fbc0-0000-7000-8000-0000000-0000" }, "id", "canonical"},
	} {
		t.Run(name, func(t *testing.T) {
			ob, r, runner := newOutbox(t, nil)
			e := placed("1")
			c.spoil(&e)
			err := record(t.Context(), ob, runner, placed("0"), e)
			require.ErrorIs(t, err, fault.OutboxEventInvalid)
			fields := fault.FieldsOf(err)
			require.Len(t, fields, 1)
			require.Equal(t, "events[1]."+c.path, fields[0].Path)
			require.Contains(t, fields[0].Problem, c.problem)
			require.NotEmpty(t, fields[0].Fix)
			require.Zero(t, r.calls)
		})
	}
}

func TestAllProblemsOfAllEventsAreNamedAtOnce(t *testing.T) {
	ob, r, runner := newOutbox(t, nil)
	good := placed("1")
	good.ID = "0197fbc0-0000-7000-8000-000000000000"
	bad := outbox.Event{ID: good.ID, ContentType: "\x00", Payload: make([]byte, 2<<20), Headers: map[string]string{"a b": "", "c": "\x00", "d": "\n"}}
	err := record(t.Context(), ob, runner, good, bad, outbox.Event{Type: "t", ID: "x"})
	var paths []string
	for _, f := range fault.FieldsOf(err) {
		paths = append(paths, f.Path)
	}
	require.Equal(t, []string{
		"events[1].id", "events[1].type", "events[1].aggregate_type", "events[1].aggregate_id", "events[1].content_type", "events[1].payload",
		"events[1].headers", "events[1].headers.c", "events[1].headers.d",
		"events[2].id", "events[2].aggregate_type", "events[2].aggregate_id",
	}, paths)
	require.ErrorContains(t, err, "events[1].id is the id of events[0] too", "the log names them")
	require.Zero(t, r.calls)
}

func TestTheLargestEventPasses(t *testing.T) {
	ob, _, runner := newOutbox(t, nil)
	text := strings.Repeat("x", 255)
	e := outbox.Event{
		Type: text, AggregateType: text, AggregateID: text, ContentType: text, SchemaVersion: 1<<31 - 1, AggregateVersion: 1<<63 - 1,
		Payload: make([]byte, 1<<20), Headers: map[string]string{"aZ09!#$%&'*+-.^_`|~": strings.Repeat("v", 16<<10-19)},
		OccurredAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
	require.NoError(t, record(t.Context(), ob, runner, e))
}

func TestLimitsCanBeSet(t *testing.T) {
	ob, _, runner := newOutbox(t, &outbox.Options{PayloadLimit: 2, HeadersLimit: 4})
	e := placed("1")
	e.Headers = map[string]string{"ab": "cd"}
	require.NoError(t, record(t.Context(), ob, runner, e))
	e.Payload, e.Headers = []byte("123"), map[string]string{"ab": "cde"}
	require.Len(t, fault.FieldsOf(record(t.Context(), ob, runner, e)), 2)
}
