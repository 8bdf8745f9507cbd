package natsbroker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/inbox"
	"caskeleton.dev/outbox"
)

func TestTheMessageOfAnEvent(t *testing.T) {
	msg, err := encode("events", "/orders", outbox.Event{
		ID: "0190-a", Type: "order.placed", SchemaVersion: 2, AggregateType: "order", AggregateID: "42", AggregateVersion: 7, Sequence: 3,
		Payload: []byte("{}"), ContentType: "application/json; charset=utf-8", OccurredAt: time.Date(2026, 2, 3, 4, 5, 6, 7000, time.FixedZone("", 3600)),
		Headers: map[string]string{"traceparent": "00-1-2-01", "tenant": "a \"b\"\r\nNats-Rollup: all", "Nats-Msg-Id": "other", "x y\n": "1"},
	})
	require.NoError(t, err)
	require.Equal(t, "events.order.order.placed", msg.Subject)
	require.Equal(t, "{}", string(msg.Data))
	require.Empty(t, cmp.Diff(nats.Header{
		"Nats-Msg-Id":          {"0190-a"},
		"ce-specversion":       {"1.0"},
		"ce-id":                {"0190-a"},
		"ce-source":            {"/orders"},
		"ce-type":              {"order.placed"},
		"ce-subject":           {"42"},
		"ce-time":              {"2026-02-03T03:05:06.000007Z"},
		"ce-aggregatetype":     {"order"},
		"ce-aggregateid":       {"42"},
		"ce-aggregatesequence": {"3"},
		"ce-aggregateversion":  {"7"},
		"ce-schemaversion":     {"2"},
		"content-type":         {"application/json; charset=utf-8"},
		"traceparent":          {"00-1-2-01"},
		"hdr-tenant":           {"a%20%22b%22%0D%0ANats-Rollup:%20all"},
		"hdr-Nats-Msg-Id":      {"other"},
		"hdr-x%20y%0A":         {"1"},
	}, msg.Header))
}

func TestDefaultsOfAnEvent(t *testing.T) {
	msg, err := encode("events", "/", outbox.Event{ID: "1", Type: "t", AggregateType: "a", AggregateID: "1"})
	require.NoError(t, err)
	require.Equal(t, []string{"application/json"}, msg.Header["content-type"])
	require.Equal(t, []string{"1"}, msg.Header["ce-schemaversion"])
	require.NotContains(t, msg.Header, "ce-aggregateversion")
}

func TestSubjectsAreSafeAndDiffer(t *testing.T) {
	pairs := [][2]string{
		{"order", "order.placed"},
		{"order", "order placed"},
		{"order", "order%20placed"},
		{"order", "order..placed"},
		{"order", ""},
		{"order", "."},
		{"order.order", "placed"},
		{"order", "order.*"},
		{"order", ">"},
		{"*", "x"},
		{"$SYS", "x"},
		{"", "x"},
		{"%", "x"},
		{"주문", "생성"},
		{"order", "a\r\nPUB x"},
		{"order\x00", "x"},
		{"\xff", "x"},
		{"order", "order.placed."},
	}
	seen := map[string][2]string{}
	for _, p := range pairs {
		s, err := subject("events", p[0], p[1])
		require.NoError(t, err)
		require.NotContains(t, seen, s, "%q and %q", p, seen[s])
		seen[s] = p
		require.Regexp(t, `^events(\.[A-Za-z0-9_~%-]+){2,}$`, s)
	}
	_, err := subject("events", "order", string(make([]byte, 400)))
	require.ErrorContains(t, err, "use a shorter event type")
}

// FuzzMessage sends any texts through the headers that the client writes and the server passes on.
func FuzzMessage(f *testing.F) {
	f.Add("id", "order.placed", "order", "42", "application/json", "name", "value", []byte("{}"))
	f.Add("i\r\nd", "", "%", "\x00\xff", "text/plain; a=\"b c\"", "Nats-Msg-Id", "%0A", []byte(nil))
	f.Fuzz(func(t *testing.T, id, typ, aggregateType, aggregateID, contentType, name, value string, payload []byte) {
		if id == "" || typ == "" || aggregateID == "" || len(typ)+len(aggregateType) > 300 {
			return
		}
		e := outbox.Event{
			ID: id, Type: typ, AggregateType: aggregateType, AggregateID: aggregateID, Sequence: 9, Payload: payload, ContentType: contentType,
			Headers: map[string]string{name: value},
		}
		msg, err := encode("events", "/", e)
		require.NoError(t, err)
		for k, v := range msg.Header {
			require.Len(t, v, 1)
			require.NotRegexp(t, `[^!-~]`, k)
			require.NotRegexp(t, `[^ -~]`, v[0])
		}
		got, err := decode(msg.Header, payload)
		require.NoError(t, err)
		if contentType == "" {
			contentType = "application/json"
		}
		require.Empty(t, cmp.Diff(inbox.Message{
			ID: id, Type: typ, AggregateType: aggregateType, AggregateID: aggregateID, Sequence: 9, Payload: payload, ContentType: contentType,
			Headers: map[string]string{name: value},
		}, got))
	})
}

func TestAMessageThatIsNoEvent(t *testing.T) {
	for want, h := range map[string]nats.Header{
		"ce-id and ce-type are required":           {"ce-type": {"t"}},
		"header ce-id is not percent-encoded":      {"ce-id": {"100%"}, "ce-type": {"t"}},
		"header ce-aggregatesequence is no number": {"ce-id": {"1"}, "ce-type": {"t"}, "ce-aggregatesequence": {"-1"}},
	} {
		_, err := decode(h, nil)
		require.ErrorContains(t, err, want)
	}
	m, err := decode(nats.Header{"ce-id": {"1"}, "ce-type": {"t"}, "ce-subject": {"42"}}, nil)
	require.NoError(t, err)
	require.Equal(t, "42", m.AggregateID)
}
