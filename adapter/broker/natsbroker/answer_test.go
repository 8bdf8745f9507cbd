package natsbroker_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/outbox"
)

// impostor is a server without JetStream and a client that plays it: it answers each publish with the next of answers, "" meaning not at
// all, and reports the ids that it was asked to store.
func impostor(t *testing.T, answers ...string) (*natsbroker.Publisher, <-chan string) {
	t.Helper()
	ns, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true})
	require.NoError(t, err)
	ns.Start()
	require.True(t, ns.ReadyForConnections(soon))
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	nc, err := nats.Connect(ns.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)

	info, err := json.Marshal(jetstream.StreamInfo{Config: jetstream.StreamConfig{
		Name: "events", Subjects: []string{"events.>"}, Discard: jetstream.DiscardNew, Replicas: 3, Duplicates: time.Hour,
	}})
	require.NoError(t, err)
	_, err = nc.Subscribe("$JS.API.STREAM.INFO.events", func(m *nats.Msg) { _ = m.Respond(info) })
	require.NoError(t, err)
	asked := make(chan string, 10)
	_, err = nc.Subscribe("events.>", func(m *nats.Msg) {
		asked <- m.Header.Get(nats.MsgIdHdr)
		if answers[0] != "" {
			_ = m.Respond([]byte(answers[0]))
		}
		answers = answers[1:]
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())

	c, err := natsbroker.Connect(ns.ClientURL(), &natsbroker.ConnOptions{Timeout: 300 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return publisher(t, streamOn(t, c, natsbroker.StreamOptions{})), asked
}

func TestWhatCountsAsStored(t *testing.T) {
	const good = `{"stream":"events","seq":7}`
	for name, c := range map[string]struct {
		answer  string
		stored  bool
		down    bool
		unknown bool
	}{
		"acknowledged":        {answer: good, stored: true},
		"duplicate":           {answer: `{"stream":"events","seq":3,"duplicate":true}`, stored: true},
		"in process":          {answer: `{"stream":"events","error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}`, unknown: true},
		"no answer":           {answer: "", unknown: true, down: true},
		"another stream":      {answer: `{"stream":"other","seq":7}`, unknown: true},
		"no sequence":         {answer: `{"stream":"events"}`, unknown: true},
		"no acknowledgement":  {answer: `thanks`, unknown: true},
		"an empty answer":     {answer: ` `, unknown: true},
		"refused":             {answer: `{"stream":"events","error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"}}`},
		"out of resources":    {answer: `{"stream":"events","error":{"code":503,"err_code":10023,"description":"insufficient resources"}}`, down: true},
		"error and a place":   {answer: `{"stream":"events","seq":7,"error":{"code":500,"err_code":10077,"description":"store failed"}}`, down: true},
		"duplicate, no place": {answer: `{"stream":"events","duplicate":true}`, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, asked := impostor(t, good, c.answer, good)
			acked, err := p.Publish(t.Context(), events("a", 1, 3))
			require.Equal(t, "a-1", <-asked)
			require.Equal(t, "a-2", <-asked)
			if c.stored {
				require.NoError(t, err)
				require.Equal(t, 3, acked)
				require.Equal(t, "a-3", <-asked)
				return
			}
			require.Equal(t, 1, acked)
			require.ErrorContains(t, err, "event a-2")
			require.Equal(t, c.down, errors.Is(err, outbox.ErrBrokerDown), "%v", err)
			require.Equal(t, c.unknown, errors.Is(err, natsbroker.ErrUnknownOutcome), "%v", err)
			require.Empty(t, asked, "nothing goes out after an event that failed")
		})
	}
}
