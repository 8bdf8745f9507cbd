package natsbroker

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
)

const (
	refetchDelay = 500 * time.Millisecond
	flushTimeout = 2 * time.Second // for what is on its way when a consumer stops
)

// fetch sends deliveries to arrived until ctx is done and what was on its way has come. Where the consumer is gone, or the broker, it
// starts over.
func (c *Consumer) fetch(ctx context.Context, arrived chan<- *delivery) error {
	for ctx.Err() == nil {
		cons, err := c.ensure(ctx)
		if err == nil {
			err = c.drain(ctx, cons, arrived)
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // told to stop, whatever err says of that
		case c.stream.conn.nc.IsClosed():
			return fault.Textf("natsbroker: consumer %q: the connection was closed", c.name)
		case refused(err):
			return fault.Textf("natsbroker: consumer %q: %w", c.name, told(err))
		}
		c.opts.Logger.WarnContext(ctx, "NATS consumer starts over", "consumer", c.name, "error", fault.Reason(told(err)))
		_ = backoff.Wait(ctx, refetchDelay)
	}
	return nil
}

// refused reports whether the broker will say the same next time.
func refused(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.Code == http.StatusBadRequest || api.ErrorCode == jetstream.JSErrCodeConsumerCreate)
}

func (c *Consumer) ensure(ctx context.Context) (jetstream.Consumer, error) {
	if _, err := c.stream.info(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := c.stream.conn.bounded(ctx)
	defer cancel()
	return c.stream.conn.js.CreateOrUpdateConsumer(ctx, c.stream.opts.Name, c.config())
}

// drain hands on what the broker delivers, at once: all that is held here is kept alive by the loop's heartbeat, and bounded by
// MaxAckPending.
func (c *Consumer) drain(ctx context.Context, cons jetstream.Consumer, arrived chan<- *delivery) error {
	msgs, err := cons.Messages(jetstream.PullMaxMessages(c.opts.MaxAckPending))
	if err != nil {
		return err
	}
	defer msgs.Stop()
	watch, stopWatch := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); c.lag.watch(watch, cons, c.stream.conn) }()
	defer func() { stopWatch(); <-watched }()

	flush, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		msgs.Drain()
		select {
		case <-time.After(flushTimeout):
			cancel()
		case <-flush.Done():
		}
	})()
	for {
		raw, err := msgs.Next(jetstream.NextContext(flush))
		if err != nil {
			return err
		}
		if d := c.receive(ctx, raw); d != nil {
			arrived <- d // the loop runs until fetch has ended
		}
	}
}
