package outbox

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"caskeleton.dev/fault"
)

// maxText bounds the text fields, in bytes: two of them make the key of the store's index, which has a limit.
const maxText = 255

// validate returns everything that is wrong with events. The texts hold no values.
func (o Options) validate(events []Event) []fault.Field {
	var all []fault.Field
	ids := make(map[string]int, len(events))
	for i, e := range events {
		add := func(field, problem, fix string) {
			all = append(all, fault.Field{Path: fmt.Sprintf("events[%d].%s", i, field), Problem: problem, Fix: fix})
		}
		if e.ID != "" {
			if first, ok := ids[e.ID]; ok {
				add("id", fmt.Sprintf("is the id of events[%d] too", first), "give each event an id of its own, or none")
			}
			ids[e.ID] = i
			if !isUUID(e.ID) {
				add("id", "is not a UUID in its canonical form", `write it in lower case, as in "0197fbc0-0000-7000-8000-000000000000", or leave it empty`)
			}
		}
		for _, f := range []struct {
			name, value string
			required    bool
		}{
			{"type", e.Type, true},
			{"aggregate_type", e.AggregateType, true},
			{"aggregate_id", e.AggregateID, true},
			{"content_type", e.ContentType, false},
		} {
			problem, fix := badText(f.value)
			if f.value == "" && f.required {
				problem, fix = "is missing", "set it"
			}
			if len(f.value) > maxText {
				problem, fix = fmt.Sprintf("has %d bytes; at most %d are stored", len(f.value), maxText), "shorten it"
			}
			if problem != "" {
				add(f.name, problem, fix)
			}
		}
		if e.SchemaVersion < 0 || e.SchemaVersion > math.MaxInt32 {
			add("schema_version", "is out of range", "use a number from 1, or 0 for 1")
		}
		if e.AggregateVersion < 0 {
			add("aggregate_version", "is negative", "use a number from 1, or 0 for none")
		}
		if y := e.OccurredAt.UTC().Year(); y < 1 || y > 9999 {
			add("occurred_at", "is not in the years 1 to 9999", "correct it, or leave it zero for the time of recording")
		}
		if len(e.Payload) > o.PayloadLimit {
			add("payload", fmt.Sprintf("has %d bytes; at most %d are stored", len(e.Payload), o.PayloadLimit), "store it elsewhere and send a reference, or raise PayloadLimit")
		}
		o.validateHeaders(e.Headers, add)
	}
	return all
}

func (o Options) validateHeaders(headers map[string]string, add func(field, problem, fix string)) {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		size += len(name) + len(value)
		if !isToken(name) {
			add("headers", "has a name that is empty or not a token of RFC 9110", `use letters, digits and "-", as in "trace-id"`)
			continue
		}
		if problem, fix := badText(value); problem != "" {
			add("headers."+name, problem, fix)
		} else if strings.ContainsAny(value, "\r\n") {
			add("headers."+name, "has a line break", "encode it: no broker's header can carry one")
		}
	}
	if size > o.HeadersLimit {
		add("headers", fmt.Sprintf("have %d bytes; at most %d are stored", size, o.HeadersLimit), "move what is large into the payload")
	}
}

// badText says why the store could not keep s as text.
func badText(s string) (problem, fix string) {
	switch {
	case strings.IndexByte(s, 0) >= 0:
		return fmt.Sprintf("has a NUL byte at position %d", strings.IndexByte(s, 0)+1), "remove it: text cannot hold one"
	case !utf8.ValidString(s):
		return "is not valid UTF-8", "send text as UTF-8, and bytes in the payload"
	}
	return "", ""
}

// isToken is RFC 9110 section 5.6.2, which header names of NATS, Kafka bridges and HTTP have in common.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
