package redislock

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// clientError is an error of the client, or of the server, with what a log may have of it.
type clientError struct {
	error
	said string
}

func (e clientError) Unwrap() error        { return e.error }
func (e clientError) LogValue() slog.Value { return slog.StringValue(e.said) }

// kinds are the words that an answer of Redis may begin with. What follows them may be anything: keys, values, users, addresses.
var kinds = []string{
	"ASK", "BUSY", "CLUSTERDOWN", "CROSSSLOT", "ERR", "EXECABORT", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOAUTH", "NOPERM", "NOREPLICAS",
	"NOSCRIPT", "OOM", "READONLY", "TRYAGAIN", "UNKILLABLE", "WRONGPASS", "WRONGTYPE",
}

// told returns err so that a log gets what is surely free of keys, hosts and values.
func told(err error) error {
	if answer, ok := errors.AsType[*rueidis.RedisError](err); ok {
		kind, _, _ := strings.Cut(answer.Error(), " ")
		if !slices.Contains(kinds, kind) {
			kind = "ERR" // which the client cuts off
		}
		return clientError{err, "Redis refused: " + kind}
	}
	if errors.Is(err, rueidis.ErrClosing) {
		return clientError{err, rueidis.ErrClosing.Error()}
	}
	return err
}
