package bootstrap

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"caskeleton.dev/adapter/broker/natsbroker"
	natsembedded "caskeleton.dev/adapter/broker/natsbroker/embedded"
	"caskeleton.dev/adapter/postgres/pginbox"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/bootstrap/config"
	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/outbox"
)

// Events is what a service adds that records events and consumes them.
type Events struct {
	// Consumers returns who handles which events, once everything they are given works; nil: this service only publishes.
	Consumers func(*App) []Consumer
}

// Consumer handles events, each one once.
type Consumer struct {
	Name           string                       // of its inbox and of its place in the stream; never changed once it has consumed
	AggregateTypes []string                     // only events about these; empty means all
	Effects        map[string]natsbroker.Effect // by event type; other types are passed over
}

// publishTimeout bounds one publish of a run. The relay's lease must be longer, and the stream's memory of ids longer still.
const publishTimeout = 10 * time.Second

// broker is the way out and in: the stream, and the server where it is ours.
type broker struct {
	server *natsembedded.Server
	conn   *natsbroker.Conn
	stream *natsbroker.Stream
}

// connectBroker returns the stream of a configuration. Without NATS_URL the dev profile runs a server in this process.
func connectBroker(ctx context.Context, c *config.Config, name string, log *slog.Logger) (_ *broker, err error) {
	b := &broker{}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	opts := &natsbroker.ConnOptions{Name: name, MonitorURL: c.NATS.MonitorURL.Reveal(), Logger: log}
	switch {
	case c.NATS.URL.IsSet():
	case c.Profile != config.Dev:
		return nil, errors.New("NATS_URL is not set; the prod profile needs it: name a NATS server with JetStream, as nats://host:4222")
	default:
		dir := filepath.Join(c.DataDir, "nats")
		if b.server, err = natsembedded.Start(ctx, natsembedded.Options{DataDir: dir, Logger: log}); err != nil {
			return nil, err
		}
		opts.Server, opts.MonitorURL = b.server, ""
		log.InfoContext(ctx, "embedded NATS is up in this process", "data_dir", dir)
	}
	if b.conn, err = natsbroker.Connect(c.NATS.URL.Reveal(), opts); err != nil {
		return nil, err
	}
	replicas := 3
	if c.Profile == config.Dev {
		replicas = 1
	}
	b.stream, err = natsbroker.NewStream(b.conn, &natsbroker.StreamOptions{
		Create: true, Replicas: replicas, AcceptUnknownSync: c.Profile == config.Dev,
		ResendHorizon: c.Outbox.Lease + publishTimeout + c.Outbox.BackoffMax,
	})
	return b, err
}

// check refuses a stream that may lose events. A broker that does not answer yet is waited for by the relay, which checks it then.
func (b *broker) check(ctx context.Context, log *slog.Logger) error {
	_, err := b.stream.Check(ctx)
	if _, refused := errors.AsType[*natsbroker.NotDurableError](err); refused || err == nil {
		return err
	}
	log.WarnContext(ctx, "NATS is not reachable yet; events are recorded and wait", "error", fault.Reason(err))
	return nil
}

func (b *broker) close() {
	if b.conn != nil {
		b.conn.Close()
	}
	if b.server != nil {
		b.server.Shutdown()
	}
}

// relay returns the relay of app's outbox.
func (b *broker) relay(c *config.Config, s Service, app *App) (*outbox.Relay, error) {
	publisher, err := natsbroker.NewPublisher(b.stream, &natsbroker.PublisherOptions{Source: "/" + s.Name})
	if err != nil {
		return nil, err
	}
	return outbox.NewRelay(pgoutbox.New(app.DB), publisher, &outbox.RelayOptions{
		BatchSize: c.Outbox.BatchSize, RunSize: c.Outbox.RunSize, Lease: c.Outbox.Lease, PollInterval: c.Outbox.PollInterval,
		BackoffBase: c.Outbox.BackoffBase, BackoffMax: c.Outbox.BackoffMax, PublishTimeout: publishTimeout,
		Bell: app.Outbox.Bell(), Meter: s.Meter, Logger: app.Log,
	})
}

// consumers returns the consumers of a service, each behind an inbox of its own.
func (b *broker) consumers(c *config.Config, s Service, app *App) ([]worker, error) {
	if s.Events.Consumers == nil {
		return nil, nil
	}
	var workers []worker
	for _, consumer := range s.Events.Consumers(app) {
		in, err := inbox.New(pginbox.New(app.DB), app.Runner, consumer.Name, &inbox.Options{MaxAttempts: c.Inbox.MaxAttempts, Meter: s.Meter, Logger: app.Log})
		if err != nil {
			return nil, err
		}
		nc, err := natsbroker.NewConsumer(b.stream, consumer.Name, natsbroker.Route(in, consumer.Effects), &natsbroker.ConsumerOptions{
			AggregateTypes: consumer.AggregateTypes, Meter: s.Meter, Logger: app.Log,
		})
		if err != nil {
			return nil, err
		}
		workers = append(workers, worker{"consumer " + consumer.Name, nc.Run})
	}
	return workers, nil
}
