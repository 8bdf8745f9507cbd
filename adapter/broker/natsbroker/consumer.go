package natsbroker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/metric"
)

const (
	defaultConcurrency = 8
	defaultAckPending  = 256
	defaultAckWait     = 30 * time.Second
	defaultDrain       = 10 * time.Second
	minAckWait         = 100 * time.Millisecond
)

// ConsumerOptions configure a [Consumer]. The zero value is the default.
type ConsumerOptions struct {
	AggregateTypes []string // only messages about these; empty means all
	Concurrency    int      // messages handled at once, each of another aggregate; 0 means 8
	// MaxAckPending bounds the messages that all processes of the consumer hold at once, being handled or waiting their turn; 0 means 256.
	// Events that wait behind a failing one count, so a small bound lets one aggregate hold up the others.
	MaxAckPending int
	AckWait       time.Duration        // until the messages of a process that died are delivered to another; 0 means 30 s
	DrainTimeout  time.Duration        // how long handlers may take to finish when Run is told to stop; 0 means 10 s
	Meter         metric.MeterProvider // nil means no metrics
	Logger        *slog.Logger         // nil means the connection's
}

// Consumer hands the messages of a stream to a handler, and acknowledges them afterwards. Any number of processes may run the consumer of
// one name; each message goes to one of them.
//
// Within a process the messages of an aggregate are handled one at a time, in the stream's order. One that failed keeps its place: it is
// tried again here after its delay, with its attempts counted on (an outage of the database does not count) and the broker told that it is
// in progress, and nothing of the aggregate overtakes it; other aggregates go on. One that is Busy is given back to the broker; what comes
// after it waits for its return, for the delay and AckWait at most, since it may return to another process. Between processes, and after
// one was killed or lost its connection with messages under way, there is no order: a handler that needs it there looks at the message's
// sequence.
type Consumer struct {
	stream  *Stream
	name    string
	handler Handler
	opts    ConsumerOptions
	lag     lag
}

var consumerName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// NewConsumer returns the consumer of a name, which the broker keeps the position of. It asks the broker nothing yet.
func NewConsumer(s *Stream, name string, h Handler, o *ConsumerOptions) (*Consumer, error) {
	if s == nil || h == nil {
		return nil, errors.New("natsbroker: a stream (NewStream) and a handler (Route) are required")
	}
	c := &Consumer{stream: s, name: name, handler: h}
	if o != nil {
		c.opts = *o
	}
	if !consumerName.MatchString(name) {
		return nil, fmt.Errorf("natsbroker: consumer %q is no consumer name: use 1 to 64 letters, digits, - and _", name)
	}
	if err := c.opts.fill(s.conn.opts.Logger); err != nil {
		return nil, err
	}
	var err error
	c.lag, err = newLag(c.opts.Meter, name)
	return c, err
}

func (o *ConsumerOptions) fill(log *slog.Logger) error {
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.MaxAckPending = cmp.Or(o.MaxAckPending, max(defaultAckPending, o.Concurrency))
	o.AckWait = cmp.Or(o.AckWait, defaultAckWait)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, defaultDrain)
	o.Logger = cmp.Or(o.Logger, log)
	o.AggregateTypes = append([]string(nil), o.AggregateTypes...)
	switch {
	case o.Concurrency < 0:
		return fmt.Errorf("natsbroker: Concurrency is %d; it must be positive, or 0 for %d", o.Concurrency, defaultConcurrency)
	case o.MaxAckPending < o.Concurrency:
		return fmt.Errorf("natsbroker: MaxAckPending is %d, less than Concurrency, %d: handlers would never be busy", o.MaxAckPending, o.Concurrency)
	case o.AckWait < minAckWait:
		return fmt.Errorf("natsbroker: AckWait is %v; it must be %v at least, or 0 for %v", o.AckWait, minAckWait, defaultAckWait)
	case o.DrainTimeout < 0:
		return fmt.Errorf("natsbroker: DrainTimeout is %v; it must be positive, or 0 for %v", o.DrainTimeout, defaultDrain)
	}
	return nil
}

// config is what the broker is told to keep. It redelivers for ever: giving up is the inbox's decision, since it keeps the message.
func (c *Consumer) config() jetstream.ConsumerConfig {
	cfg := jetstream.ConsumerConfig{
		Durable:       c.name,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       c.opts.AckWait,
		MaxAckPending: c.opts.MaxAckPending,
		MaxDeliver:    -1,
		DeliverPolicy: jetstream.DeliverAllPolicy,
	}
	for _, t := range c.opts.AggregateTypes {
		cfg.FilterSubjects = append(cfg.FilterSubjects, c.stream.opts.Prefix+"."+token(t)+".>")
	}
	return cfg
}

// Run handles messages until ctx is done. Then it fetches no more, lets handlers finish for DrainTimeout and cancels those that have not,
// gives everything else back to the broker, and returns nil. It outlives restarts of the broker; it fails where the broker refuses the
// consumer, or the connection was closed. One Run of a Consumer at a time.
func (c *Consumer) Run(ctx context.Context) error {
	// The handlers' context ends after the drain, not with ctx, and so does fetching what is already under way.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r := &run{
		c: c, lanes: newLanes(), stopping: ctx.Done(), cancel: cancel,
		arrived: make(chan *delivery), done: make(chan result),
	}
	ended := make(chan error, 1)
	go func() { ended <- c.fetch(ctx, r.arrived) }()
	return r.loop(work, ended)
}
