package natsbroker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"caskeleton.dev/fault"
)

const (
	defaultStream  = "events"
	defaultHorizon = 10 * time.Minute
)

// StreamOptions say where events are stored, and what is asked of that place. The zero value is the default.
type StreamOptions struct {
	Name   string // of the stream; "" means events
	Prefix string // of the subjects; "" means events
	// ResendHorizon is for how long after its first try an event may be sent again: the relay's lease, the publish timeout and the longest
	// back-off together. The stream recognises repeated events for at least as long; 0 means 10 min.
	ResendHorizon time.Duration
	// Create makes the stream where there is none. One that exists is never changed.
	Create   bool
	Replicas int           // of a stream that is made; 0 means 1
	MaxAge   time.Duration // of the messages in a stream that is made; 0 keeps them. It must exceed the time for which a consumer may be away
	MaxBytes int64         // of a stream that is made, which then refuses more; 0 means as much as the server has
	// AcceptUnknownSync takes a stream with less than 3 replicas although nobody knows whether its server fsyncs before it acknowledges.
	// With it, a power cut may take events that were acknowledged.
	AcceptUnknownSync bool
}

// Stream is a JetStream stream for events. Safe for concurrent use.
type Stream struct {
	conn *Conn
	opts StreamOptions

	mu      sync.Mutex // one check at a time
	checked bool
	epoch   uint64 // of the connection when it was checked
}

var (
	streamName    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	subjectPrefix = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
)

// NewStream returns the stream of o. It asks the broker nothing yet: [Stream.Check] does, and the first event does.
func NewStream(c *Conn, o *StreamOptions) (*Stream, error) {
	s := &Stream{conn: c}
	if o != nil {
		s.opts = *o
	}
	if c == nil {
		return nil, fault.Text("natsbroker: a connection (Connect) is required")
	}
	return s, s.opts.fill()
}

func (o *StreamOptions) fill() error {
	o.Name = cmp.Or(o.Name, defaultStream)
	o.Prefix = cmp.Or(o.Prefix, defaultStream)
	o.ResendHorizon = cmp.Or(o.ResendHorizon, defaultHorizon)
	o.Replicas = cmp.Or(o.Replicas, 1)
	switch {
	case !streamName.MatchString(o.Name):
		return fault.Textf("natsbroker: Name %q is no stream name: use 1 to 64 letters, digits, - and _", o.Name)
	case !subjectPrefix.MatchString(o.Prefix) || len(o.Prefix) > 128:
		return fault.Textf("natsbroker: Prefix %q is no subject prefix: use letters, digits, - and _ in tokens divided by dots, 128 bytes at most", o.Prefix)
	case o.ResendHorizon < time.Second:
		return fault.Textf("natsbroker: ResendHorizon is %v; it must be 1 s at least, or 0 for %v", o.ResendHorizon, defaultHorizon)
	case o.Replicas < 1 || o.Replicas > 5:
		return fault.Textf("natsbroker: Replicas is %d; use 1 to 5, or 0 for 1", o.Replicas)
	case o.MaxAge < 0 || o.MaxAge > 0 && o.MaxAge < o.ResendHorizon:
		return fault.Textf("natsbroker: MaxAge is %v; it must be 0 or ResendHorizon (%v) at least, since a message that is gone is not recognised when it is repeated", o.MaxAge, o.ResendHorizon)
	case o.MaxBytes < 0:
		return fault.Textf("natsbroker: MaxBytes is %d; it must be positive, or 0 for no limit", o.MaxBytes)
	}
	return nil
}

func (o *StreamOptions) config() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:       o.Name,
		Subjects:   []string{o.Prefix + ".>"},
		Storage:    jetstream.FileStorage,
		Retention:  jetstream.LimitsPolicy,
		Discard:    jetstream.DiscardNew,
		Replicas:   o.Replicas,
		Duplicates: o.ResendHorizon,
		MaxAge:     o.MaxAge,
		MaxBytes:   cmp.Or(o.MaxBytes, -1),
	}
}

// info returns the stream's present settings, making the stream where it is to be made.
func (s *Stream) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := s.conn.bounded(ctx)
	defer cancel()
	str, err := s.conn.js.Stream(ctx, s.opts.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if !s.opts.Create {
			return nil, &NotDurableError{s.opts.Name, []Refusal{{"stream", "missing", fmt.Sprintf("make it with subjects %s.>, or set Create", s.opts.Prefix)}}}
		}
		str, err = s.conn.js.CreateStream(ctx, s.opts.config())
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // somebody else made another one in between
			str, err = s.conn.js.Stream(ctx, s.opts.Name)
		}
	}
	if err != nil {
		return nil, fault.Textf("natsbroker: stream %q: %w", s.opts.Name, classify(err))
	}
	return str.CachedInfo(), nil
}
