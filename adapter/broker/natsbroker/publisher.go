package natsbroker

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
)

// PayloadLimit is the largest payload that surely fits into a message, beside the headers that an event may have, where the server's
// max_payload is the default of 1 MiB. An outbox that takes larger ones needs a server that does; an event that does not fit blocks its lane.
const PayloadLimit = 1<<20 - 128<<10

// PublisherOptions configure a [Publisher]. The zero value is the default.
type PublisherOptions struct {
	Source string // the events' ce-source, a URI reference that names the service; "" means "/" and the connection's name
}

// Publisher is an [outbox.Publisher] for a JetStream stream. Safe for concurrent use.
//
// The events of a run go out one at a time, each after the acknowledgement of the one before, so that nothing is stored after an event that
// failed. That costs a round trip an event, with sync_always an fsync too; runs of different aggregates share no wait. JetStream has
// nothing to pipeline a run with: Nats-Expected-Last-Subject-Sequence asks for the stream's sequence number of the event before, which is
// not known until it is acknowledged.
type Publisher struct {
	stream *Stream
	source string
}

var _ outbox.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher for s.
func NewPublisher(s *Stream, o *PublisherOptions) (*Publisher, error) {
	if s == nil {
		return nil, fault.Text("natsbroker: a stream (NewStream) is required")
	}
	p := &Publisher{stream: s, source: "/" + s.conn.opts.Name}
	if o != nil && o.Source != "" {
		p.source = o.Source
	}
	return p, nil
}

// Publish sends a run; see [outbox.Publisher]. An event counts when the stream's acknowledgement names the place it is stored at, now or
// at an earlier try. An error is [ErrUnknownOutcome] where the event may be stored nevertheless.
func (p *Publisher) Publish(ctx context.Context, run []outbox.Event) (int, error) {
	epoch, err := p.stream.ready(ctx)
	if err != nil {
		return 0, err
	}
	for i, e := range run {
		if err := p.send(ctx, e); err != nil {
			return i, fault.Textf("natsbroker: publish event %s: %w", e.ID, err)
		}
		if p.stream.conn.epoch() != epoch {
			// It may have been stored by a server that was never checked. The next try finds out.
			return i, fault.Textf("natsbroker: publish event %s: %w", e.ID, downError{fault.Textf("reconnected in between: %w", ErrUnknownOutcome)})
		}
	}
	return len(run), nil
}

// send stores one event.
func (p *Publisher) send(ctx context.Context, e outbox.Event) error {
	msg, err := encode(p.stream.opts.Prefix, p.source, e)
	if err != nil {
		return err
	}
	bounded, cancel := p.stream.conn.bounded(ctx)
	defer cancel()
	reply, err := p.stream.conn.nc.RequestMsgWithContext(bounded, msg)
	if err != nil {
		if context.Cause(ctx) != nil && errors.Is(err, context.Canceled) {
			return fault.Textf("%w: %w", ErrUnknownOutcome, err) // the caller's wish, which says nothing about the broker
		}
		return classify(err)
	}
	return acknowledged(reply.Data, p.stream.opts.Name)
}

// ack is what JetStream answers to a publish.
type ack struct {
	jetstream.PubAck
	Error *jetstream.APIError `json:"error"`
}

// acknowledged returns nil if an answer names where the stream stored the event.
func acknowledged(answer []byte, stream string) error {
	var a ack
	switch err := json.Unmarshal(answer, &a); {
	case err != nil:
		return fault.Textf("%w: the answer is no acknowledgement: is something else subscribed to the subject?", ErrUnknownOutcome)
	case a.Error != nil:
		return classify(a.Error)
	case a.Stream != stream:
		return fault.Textf("%w: another stream than %q answered", ErrUnknownOutcome, stream)
	case a.Sequence == 0:
		return fault.Textf("%w: the acknowledgement names no sequence number", ErrUnknownOutcome)
	}
	return nil // a.Duplicate: an earlier try was stored
}

// errInProcess is "duplicate message id is in process": an earlier try may yet be stored, or fail.
const errInProcess = 10158

// classify tells an error that has to do with the event from one that the whole broker has, and marks unknown outcomes.
func classify(err error) error {
	err = told(err)
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && api.ErrorCode == errInProcess:
		return fault.Textf("%w: %w", ErrUnknownOutcome, err)
	case errors.As(err, &api) && api.Code >= http.StatusInternalServerError,
		errors.Is(err, jetstream.ErrJetStreamNotEnabled),
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
		errors.Is(err, nats.ErrNoResponders),
		errors.Is(err, nats.ErrReconnectBufExceeded),
		errors.Is(err, nats.ErrInvalidConnection),
		errors.Is(err, nats.ErrConnectionDraining):
		return downError{err}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout),
		errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected):
		return downError{fault.Textf("%w: %w", ErrUnknownOutcome, err)}
	}
	return err
}
