package natsbroker

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
)

// NotDurableError says why a stream is not trusted with events: what it acknowledges could be lost. It is also [outbox.ErrBrokerDown],
// since nothing is wrong with the events.
type NotDurableError struct {
	Stream   string
	Refusals []Refusal
}

// Refusal is one setting that is not as it must be.
type Refusal struct {
	Setting string
	Value   string // what it is
	Fix     string // what to do
}

// Error lists all refusals.
func (e *NotDurableError) Error() string {
	all := make([]string, len(e.Refusals))
	for i, r := range e.Refusals {
		all[i] = fmt.Sprintf("%s is %s: %s", r.Setting, r.Value, r.Fix)
	}
	return fmt.Sprintf("natsbroker: stream %q may lose events: %s", e.Stream, strings.Join(all, "; "))
}

// LogValue makes an error log as its text, which is made of settings.
func (e *NotDurableError) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// Is makes the error an [outbox.ErrBrokerDown].
func (e *NotDurableError) Is(target error) bool { return target == outbox.ErrBrokerDown }

// ErrUnknownOutcome is what an error of Publish is where the server may have stored the event. It is to be sent again with the same id.
var ErrUnknownOutcome error = fault.Text("the outcome is unknown")

// downError is an err with nothing wrong in the event.
type downError struct{ err error }

func (e downError) Error() string   { return e.err.Error() }
func (e downError) Unwrap() []error { return []error{outbox.ErrBrokerDown, e.err} }

// clientError is an error of the client, or of the server, with what a log may have of it.
type clientError struct {
	error
	said string
}

func (e clientError) Unwrap() error        { return e.error }
func (e clientError) LogValue() slog.Value { return slog.StringValue(e.said) }

// constant are errors whose text is written in the client's source.
var constant = []error{
	nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAuthorization, nats.ErrConnectionClosed, nats.ErrConnectionDraining, nats.ErrDisconnected,
	nats.ErrInvalidConnection, nats.ErrMaxConnectionsExceeded, nats.ErrMaxPayload, nats.ErrNoResponders, nats.ErrNoServers, nats.ErrPermissionViolation,
	nats.ErrReconnectBufExceeded, nats.ErrSecureConnRequired, nats.ErrSecureConnWanted, nats.ErrSlowConsumer, nats.ErrStaleConnection, nats.ErrTimeout,
	jetstream.ErrConsumerDeleted, jetstream.ErrConsumerLeadershipChanged, jetstream.ErrMsgIteratorClosed, jetstream.ErrNoHeartbeat, jetstream.ErrServerShutdown,
}

// told returns err so that a log gets what is surely free of subjects, hosts and values: constant words, and JetStream's numbers.
func told(err error) error {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return clientError{err, fmt.Sprintf("JetStream error %d, status %d", api.ErrorCode, api.Code)}
	}
	for _, known := range constant {
		if errors.Is(err, known) {
			return clientError{err, known.Error()}
		}
	}
	return err
}
