package natsbroker

import (
	"fmt"
	"strings"
)

// maxSubject keeps a subject well inside the 4,096 bytes that a server takes for a whole protocol line.
const maxSubject = 1024

const upperHex = "0123456789ABCDEF"

// token makes one subject token of any text, two of two different texts.
func token(text string) string {
	if text == "" {
		return "%" // encodes nothing else
	}
	return escape(text, plainInToken)
}

func plainInToken(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '~'
}

// escape percent-encodes the bytes that are not plain.
func escape(text string, plain func(c byte) bool) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', upperHex[c>>4], upperHex[c&15]})
		}
	}
	return b.String()
}

// subject returns where events of a type about an aggregate type are published.
func subject(prefix, aggregateType, eventType string) (string, error) {
	tokens := strings.Split(eventType, ".")
	for i, t := range tokens {
		tokens[i] = token(t)
	}
	s := prefix + "." + token(aggregateType) + "." + strings.Join(tokens, ".")
	if len(s) > maxSubject {
		return "", fmt.Errorf("natsbroker: the subject of an event has %d bytes, and %d is the most: use a shorter event type or aggregate type", len(s), maxSubject)
	}
	return s, nil
}
