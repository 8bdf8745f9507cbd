package natsbroker_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/outbox"
)

func goodConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "events", Subjects: []string{"events.>"}, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew, Duplicates: time.Hour, MaxAge: 24 * time.Hour,
	}
}

func TestEachSettingThatLosesEventsIsRefused(t *testing.T) {
	b := newBroker(t)
	c := b.connect(natsbroker.ConnOptions{MonitorURL: b.srv.MonitorURL()})
	for setting, spoil := range map[string]func(*jetstream.StreamConfig){
		"":                 func(*jetstream.StreamConfig) {},
		"subjects":         func(c *jetstream.StreamConfig) { c.Subjects = []string{"events.order.>"} },
		"storage":          func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"no_ack":           func(c *jetstream.StreamConfig) { c.NoAck = true },
		"persist_mode":     func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"discard":          func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"retention":        func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy },
		"duplicate_window": func(c *jetstream.StreamConfig) { c.Duplicates = 9 * time.Minute },
		"sealed":           func(*jetstream.StreamConfig) {}, // below: a stream is not made so
	} {
		t.Run(setting, func(t *testing.T) {
			cfg := goodConfig()
			spoil(&cfg)
			js := b.js()
			_, err := js.CreateStream(t.Context(), cfg)
			require.NoError(t, err)
			defer func() { require.NoError(t, js.DeleteStream(t.Context(), "events")) }()
			if setting == "sealed" {
				cfg.Sealed = true
				_, err = js.UpdateStream(t.Context(), cfg)
				require.NoError(t, err)
			}
			s := streamOn(t, c, natsbroker.StreamOptions{Create: true})
			_, err = s.Check(t.Context())
			if setting == "" {
				require.NoError(t, err)
				return
			}
			var refused *natsbroker.NotDurableError
			require.ErrorAs(t, err, &refused)
			require.ErrorIs(t, err, outbox.ErrBrokerDown)
			var named []string
			for _, r := range refused.Refusals {
				named = append(named, r.Setting)
				require.NotEmpty(t, r.Value)
				require.NotEmpty(t, r.Fix)
				require.ErrorContains(t, err, r.Setting+" is "+r.Value+": "+r.Fix)
			}
			require.Contains(t, named, setting)

			acked, err := publisher(t, s).Publish(t.Context(), events("a", 1, 1))
			require.Zero(t, acked)
			require.ErrorAs(t, err, &refused, "and nothing is published to it")
		})
	}
}

func TestAMissingStreamIsMadeOnlyWhereAsked(t *testing.T) {
	b := newBroker(t)
	c := b.connect(natsbroker.ConnOptions{MonitorURL: b.srv.MonitorURL()})
	_, err := streamOn(t, c, natsbroker.StreamOptions{}).Check(t.Context())
	require.ErrorContains(t, err, `stream "events" may lose events: stream is missing: make it with subjects events.>`)
	_, err = streamOn(t, c, natsbroker.StreamOptions{Create: true, ResendHorizon: time.Hour, MaxBytes: 1 << 20, MaxAge: 48 * time.Hour}).Check(t.Context())
	require.NoError(t, err)
	str, err := b.js().Stream(t.Context(), "events")
	require.NoError(t, err)
	cfg := str.CachedInfo().Config
	require.Equal(t, time.Hour, cfg.Duplicates)
	require.Equal(t, int64(1<<20), cfg.MaxBytes)
	require.Equal(t, 48*time.Hour, cfg.MaxAge)
	_, err = streamOn(t, c, natsbroker.StreamOptions{}).Check(t.Context())
	require.NoError(t, err)
}

// lazy is a server as it comes: it fsyncs every two minutes.
func lazy(t *testing.T) *server.Server {
	t.Helper()
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, HTTPHost: "127.0.0.1", HTTPPort: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
	})
	require.NoError(t, err)
	ns.Start()
	require.True(t, ns.ReadyForConnections(soon))
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	return ns
}

func TestTheServersSyncIsRead(t *testing.T) {
	ns := lazy(t)
	other := newBroker(t)
	answering := func(body string, status int) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	own := "http://" + ns.MonitorAddr().String()
	for name, c := range map[string]struct {
		monitor string
		accept  bool
		sync    natsbroker.Sync
		refusal string
	}{
		"known not to":            {monitor: own, sync: natsbroker.SyncLater, refusal: "sync_always is false with 1 replicas"},
		"known not to, accepted":  {monitor: own, accept: true, sync: natsbroker.SyncLater, refusal: "sync_always is false"},
		"not asked":               {refusal: "unknown (no MonitorURL is given): give MonitorURL"},
		"not asked, accepted":     {accept: true},
		"another server's":        {monitor: other.srv.MonitorURL(), refusal: "is not the one that stores the stream"},
		"another server's, taken": {monitor: other.srv.MonitorURL(), accept: true},
		"no JetStream":            {monitor: answering(`{"server_id":"x"}`, 200), refusal: "has no JetStream"},
		"something else":          {monitor: answering(`<html>`, 200), refusal: "something else than NATS"},
		"not allowed":             {monitor: answering(``, 403), refusal: "answers 403"},
		"not there":               {monitor: "http://user:canary-secret@127.0.0.1:1", refusal: "does not answer"},
		"this one":                {monitor: answering(`{"server_id":"`+ns.ID()+`","server_name":"`+ns.Name()+`","jetstream":{"config":{"sync_always":true}}}`, 200), sync: natsbroker.SyncAlways},
	} {
		t.Run(name, func(t *testing.T) {
			var log syncBuffer
			conn, err := natsbroker.Connect(ns.ClientURL(), &natsbroker.ConnOptions{MonitorURL: c.monitor, Logger: logTo(&log)})
			require.NoError(t, err)
			t.Cleanup(conn.Close)
			require.Eventually(t, conn.Connected, soon, tick)
			d, err := streamOn(t, conn, natsbroker.StreamOptions{Create: true, AcceptUnknownSync: c.accept}).Check(t.Context())
			require.Equal(t, c.sync, d.Sync)
			require.Equal(t, 1, d.Replicas)
			require.NotContains(t, log.String(), "canary-secret")
			if c.refusal != "" {
				require.ErrorContains(t, err, c.refusal)
				require.NotContains(t, err.Error(), "canary-secret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, d.Sync == natsbroker.SyncUnknown, strings.Contains(log.String(), "may lose acknowledged events"))
		})
	}
}

func TestBadOptions(t *testing.T) {
	b := newBroker(t)
	for want, connect := range map[string]func() (*natsbroker.Conn, error){
		"server URL 2 is no URL": func() (*natsbroker.Conn, error) { return natsbroker.Connect("nats://a:1,%zz:canary", nil) },
		"server URL 1 is no URL": func() (*natsbroker.Conn, error) { return natsbroker.Connect("", nil) },
		"Timeout is -1ns": func() (*natsbroker.Conn, error) {
			return natsbroker.Connect("nats://a:1", &natsbroker.ConnOptions{Timeout: -1})
		},
		"MonitorURL is no URL": func() (*natsbroker.Conn, error) {
			return natsbroker.Connect("nats://a:1", &natsbroker.ConnOptions{MonitorURL: "canary:8222"})
		},
		"server URLs and an in-process Server": func() (*natsbroker.Conn, error) {
			return natsbroker.Connect("nats://a:1", &natsbroker.ConnOptions{Server: b.srv})
		},
	} {
		_, err := connect()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "canary")
	}
	c := b.connect(natsbroker.ConnOptions{})
	for want, o := range map[string]natsbroker.StreamOptions{
		`Name "a.b" is no stream name`: {Name: "a.b"},
		`Prefix "a.>" is no subject`:   {Prefix: "a.>"},
		"ResendHorizon is 1ms":         {ResendHorizon: time.Millisecond},
		"Replicas is 6":                {Replicas: 6},
		"MaxAge is 1m0s":               {MaxAge: time.Minute},
		"MaxBytes is -1":               {MaxBytes: -1},
	} {
		_, err := natsbroker.NewStream(c, &o)
		require.ErrorContains(t, err, want)
	}
	_, err := natsbroker.NewStream(nil, nil)
	require.ErrorContains(t, err, "a connection")
	_, err = natsbroker.NewPublisher(nil, nil)
	require.ErrorContains(t, err, "a stream")
}
