package natsbroker

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/outbox"
)

// Headers of a message. JetStream recognises a repeated one by the message id.
const (
	headerMsgID       = nats.MsgIdHdr
	headerContentType = "content-type"
	ceHeader          = "ce-"
	userHeader        = "hdr-"
)

// traceHeaders keep their names, since every instrumentation looks for them there.
var traceHeaders = []string{"traceparent", "tracestate", "baggage"}

// encodeValue is the percent-encoding of CloudEvents' HTTP binding, section 3.1.3.2. It lets no line break through.
func encodeValue(text string) string {
	return escape(text, func(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '%' })
}

// encode returns the message of an event.
func encode(prefix, source string, e outbox.Event) (*nats.Msg, error) {
	to, err := subject(prefix, e.AggregateType, e.Type)
	if err != nil {
		return nil, err
	}
	h := nats.Header{}
	set := func(name, value string) { h[name] = []string{encodeValue(value)} }
	set(headerMsgID, e.ID)
	set(ceHeader+"specversion", "1.0")
	set(ceHeader+"id", e.ID)
	set(ceHeader+"source", source)
	set(ceHeader+"type", e.Type)
	set(ceHeader+"subject", e.AggregateID)
	set(ceHeader+"time", e.OccurredAt.UTC().Format(time.RFC3339Nano))
	set(ceHeader+"aggregatetype", e.AggregateType)
	set(ceHeader+"aggregateid", e.AggregateID)
	set(ceHeader+"aggregatesequence", strconv.FormatInt(e.Sequence, 10))
	set(ceHeader+"schemaversion", strconv.Itoa(max(e.SchemaVersion, 1)))
	if e.AggregateVersion != 0 {
		set(ceHeader+"aggregateversion", strconv.FormatInt(e.AggregateVersion, 10))
	}
	if e.ContentType == "" {
		e.ContentType = "application/json"
	}
	// A media type may have a space in it, which HTTP leaves alone; a control character it may not.
	h[headerContentType] = []string{escape(e.ContentType, func(c byte) bool { return c >= ' ' && c < 0x7f && c != '%' })}
	for name, value := range e.Headers {
		if isTrace(name) {
			set(name, value)
		} else {
			set(userHeader+escape(name, plainInToken), value)
		}
	}
	return &nats.Msg{Subject: to, Header: h, Data: e.Payload}, nil
}

func isTrace(name string) bool {
	return slices.Contains(traceHeaders, name)
}

// decode returns what a message says. The error names the header that it cannot do without or cannot read.
func decode(h nats.Header, payload []byte) (inbox.Message, error) {
	var bad []error
	get := func(name string) string {
		if len(h[name]) == 0 {
			return ""
		}
		text, err := url.PathUnescape(h[name][0])
		if err != nil {
			if strings.HasPrefix(name, userHeader) {
				name = "of the service's own" // which may be anything
			}
			bad = append(bad, fault.Textf("header %s is not percent-encoded", name))
		}
		return text
	}
	m := inbox.Message{
		ID:            get(ceHeader + "id"),
		Type:          get(ceHeader + "type"),
		AggregateType: get(ceHeader + "aggregatetype"),
		AggregateID:   get(ceHeader + "aggregateid"),
		Payload:       payload,
		ContentType:   get(headerContentType),
		Headers:       map[string]string{},
	}
	if m.AggregateID == "" {
		m.AggregateID = get(ceHeader + "subject") // of a publisher that knows no aggregates
	}
	if text := get(ceHeader + "aggregatesequence"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			bad = append(bad, fault.Textf("header %saggregatesequence is no number", ceHeader))
		}
		m.Sequence = n
	}
	for name := range h {
		if own, ok := strings.CutPrefix(name, userHeader); ok {
			text := get(name)
			if own, err := url.PathUnescape(own); err == nil {
				m.Headers[own] = text
			}
		} else if isTrace(name) {
			m.Headers[name] = get(name)
		}
	}
	if m.ID == "" || m.Type == "" {
		bad = append(bad, fault.Textf("headers %sid and %stype are required: the message is no CloudEvent in binary mode", ceHeader, ceHeader))
	}
	return m, errors.Join(bad...)
}
