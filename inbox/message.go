package inbox

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"caskeleton.dev/fault"
)

// Message is what a broker delivered.
type Message struct {
	ID            string // 1 to 255 characters; stays the same over redeliveries; with the consumer's name it is the key
	Type          string // what happened: "order.placed"
	AggregateType string
	AggregateID   string
	Sequence      int64 // of the aggregate's events, 0 if unknown
	Payload       []byte
	ContentType   string
	Headers       map[string]string
	Deliveries    int // how often the broker has delivered it, this time included; 0 where it does not count
	// Redelivered says that the broker counts deliveries whether or not the message ran, as NATS does for all that a killed process held.
	// The store then counts in its place, each time before the handler.
	Redelivered bool
}

func (m Message) validate() error {
	if problem := nameProblem(m.ID); problem != "" {
		return &fault.Error{
			Code: fault.RequestInvalid, Op: op, Err: ErrInvalidMessage,
			Fields: []fault.Field{{Path: "ID", Problem: problem, Fix: nameFix}},
		}
	}
	if m.Deliveries < 0 {
		return &fault.Error{
			Code: fault.RequestInvalid, Op: op, Err: ErrInvalidMessage,
			Fields: []fault.Field{{Path: "Deliveries", Problem: "is negative", Fix: "use the broker's count, or 0 where it does not count"}},
		}
	}
	return nil
}

const (
	maxName = 255
	nameFix = "use 1 to 255 characters of valid UTF-8 without NUL"
)

// nameProblem says what is wrong with half of a key, "" if nothing is.
func nameProblem(s string) string {
	switch n := utf8.RuneCountInString(s); {
	case n == 0:
		return "is empty"
	case n > maxName:
		return fmt.Sprintf("has %d characters; at most %d are accepted", n, maxName)
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.ContainsRune(s, 0):
		return "holds a NUL"
	}
	return ""
}

// storable is m with its texts such that any store takes them: a message must not escape from being parked by what it holds.
func (m Message) storable() Message {
	headers := make(map[string]string, len(m.Headers))
	for k, v := range m.Headers {
		headers[clean(k)] = clean(v)
	}
	m.Headers = headers
	m.Type, m.AggregateType, m.AggregateID, m.ContentType = clean(m.Type), clean(m.AggregateType), clean(m.AggregateID), clean(m.ContentType)
	return m
}

func clean(s string) string {
	const replacement = string(utf8.RuneError)
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}
