package canarytest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/outbox"
)

// failing is a service that cannot do what it needs to: it logs why, says so to a client, and is not ready.
func (w *watch) failing(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		require.NotContains(t, text, canary)
	}
	w.log.ErrorContext(w.ctx, "cannot start", "error", fault.Reason(err), "itself", err)
	w.answer(t, func(context.Context) error { return err })
	h, errHealth := httpapi.NewHealth([]httpapi.Check{{Name: "database", Probe: func(context.Context) error { return err }}}, &httpapi.HealthOptions{Logger: w.log})
	require.NoError(t, errHealth)
	h.SetReady(true)
	w.serve(t, func(m *httpapi.Mux) { m.Handle("GET /readyz", http.HandlerFunc(h.Readyz)) })("GET", "/readyz", "")
}

func TestNothingOfTheDSN(t *testing.T) {
	w := newWatch(t)
	reachable, err := url.Parse(migrationstest.DSN(t, migrations.Core()))
	require.NoError(t, err)
	with := func(change func(u *url.URL)) string {
		u := *reachable
		change(&u)
		return u.String()
	}
	for _, dsn := range []string{
		"postgres://c4nary:c4nary@127.0.0.1:1/c4nary",
		"postgres://c4nary:c4nary@c4nary.invalid/c4nary",
		"postgres://c4nary:c4nary@[c4nary/c4nary",
		"host=c4nary password=c4nary port=c4nary",
		canary,
		with(func(u *url.URL) { u.Path = "/" + canary }),
		with(func(u *url.URL) { u.User = url.UserPassword(canary, canary) }),
		with(func(u *url.URL) { u.RawQuery += "&sslrootcert=/c4nary" }),
		with(func(u *url.URL) { u.RawQuery += "&c4nary=c4nary" }),
	} {
		_, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn}, &postgres.Options{Meter: w.meter, Logger: w.log})
		w.failing(t, err)
		_, err = pgoutbox.Premake(t.Context(), dsn, 2)
		w.failing(t, err)
		m, err := migrations.New(dsn, migrations.All(), &migrations.Options{Logger: w.log})
		if err == nil {
			_, err = m.Up(t.Context())
		}
		w.failing(t, err)
	}
	w.open(t, postgres.Config{ReadDSN: "postgres://c4nary:c4nary@127.0.0.1:1/c4nary"}, migrations.Core())
	require.Eventually(t, func() bool { return w.says("reads go to the primary") }, soon, tick)
	w.silent(t, "DB_UNAVAILABLE: postgres: connect: connection refused", "the host name cannot be resolved", "DB_ACCESS_DENIED: sqlstate=")
}

// A server that is not ours to trust: it knows other credentials, and its streams hold what anybody may have written.
func TestNothingOfABroker(t *testing.T) {
	w := newWatch(t)
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, Username: "u", Password: "p", MaxPayload: 1 << 20,
	})
	require.NoError(t, err)
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	require.True(t, ns.ReadyForConnections(soon))
	connect := func(user, password string) *natsbroker.Conn {
		u := &url.URL{Scheme: "nats", User: url.UserPassword(user, password), Host: ns.Addr().String()}
		c, err := natsbroker.Connect(u.String(), &natsbroker.ConnOptions{Logger: w.log, MonitorURL: "http://c4nary:c4nary@c4nary.invalid/c4nary"})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	stream := func(c *natsbroker.Conn) *natsbroker.Stream {
		s, err := natsbroker.NewStream(c, &natsbroker.StreamOptions{Create: true, AcceptUnknownSync: true})
		require.NoError(t, err)
		return s
	}

	_, err = stream(connect(canary, canary)).Check(t.Context())
	w.failing(t, err)

	s := stream(connect("u", "p"))
	_, err = s.Check(t.Context())
	require.NoError(t, err)
	p, err := natsbroker.NewPublisher(s, nil)
	require.NoError(t, err)
	e := outbox.Event{ID: "e", Type: "order.placed", AggregateType: "order", AggregateID: "1", Payload: make([]byte, 2<<20), Headers: map[string]string{canary: canary}}
	_, err = p.Publish(t.Context(), []outbox.Event{e})
	w.failing(t, err)

	nc, err := nats.Connect("nats://u:p@" + ns.Addr().String())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	for _, header := range []nats.Header{
		{canary: {canary}},
		{"ce-id": {"%zc4nary"}, "ce-type": {"%zc4nary"}},
		{"ce-id": {"1"}, "ce-type": {"order.placed"}, "ce-aggregatesequence": {canary}},
		{"ce-id": {"1"}, "ce-type": {"order.placed"}, "hdr-" + canary: {"%zc4nary"}},
	} {
		_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "events.order.placed", Header: header, Data: []byte(canary)})
		require.NoError(t, err)
	}
	consumer, err := natsbroker.NewConsumer(s, "shipping", func(context.Context, inbox.Message) (inbox.Outcome, error) {
		return inbox.Failed, fmt.Errorf("%s", canary)
	}, &natsbroker.ConsumerOptions{Logger: w.log, Meter: w.meter})
	require.NoError(t, err)
	w.until(t, consumer.Run, "no event", "is no number", "is not percent-encoded")
	w.silent(t, "nats: outbound buffer limit exceeded", "nats: maximum payload exceeded", "the monitoring endpoint does not answer")
}
