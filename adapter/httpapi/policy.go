package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
)

const (
	defaultMaxBody     = 1 << 20
	defaultMaxResponse = 1 << 20
)

// Policy is how a route is guarded. The zero value is the default.
type Policy struct {
	// MaxBody bounds the request body, which is held in memory, in bytes; 0 means 1 MiB.
	MaxBody int64
	// Route names the route in the scope of a key; "" means the pattern that matched, and where a router sets none, the path. Two mounts of one
	// router are one route: a key that was used at one of them is refused at the other.
	Route string
	// Lease and Expiry are those of [idempotency.CallOptions]; 0 means those of the guard. An answer is kept for Expiry at least, which clients
	// are to be told.
	Lease  time.Duration
	Expiry time.Duration
	// StoreRefusal reports whether a response with a status from 400 up is stored and replayed. Nil means that none is: a repeat runs the
	// operation again. Failures that are retryable are never stored.
	StoreRefusal func(status int) bool
	// Docs is where clients read how keys are used, an absolute URL; refusals of keys link to it. "" links to nothing.
	Docs string
	// Logger gets what clients do not; nil means slog.Default().
	Logger *slog.Logger

	// Decode turns the body into Request.Input, and refuses what breaks a rule, before the key is claimed. It is for [Transactional]: a
	// handler of [External] reads its body itself.
	Decode func(r *Request) (any, error)

	// MaxResponse bounds the response body of [External], in bytes; 0 means 1 MiB. At most the guard's AnswerLimit is stored.
	MaxResponse int
	// Optional lets requests without a key through [External], unguarded.
	Optional bool
	// NoEffect reports, for a status from 400 up that StoreRefusal does not store, that the handler of [External] had no effect, so that a
	// repeat may run it. With any other status the record becomes ABANDONED. Nil means each status below 500 but 408 and 499, by which
	// handlers say that time ran out or the caller left.
	NoEffect func(status int) bool
}

// ready returns the policy with its defaults, and a guard that follows it. It panics on what only a programmer can mend.
func (p Policy) ready(op string, g *idempotency.Guard) (Policy, *idempotency.Guard) {
	switch {
	case g == nil:
		panic("httpapi: " + op + " has a nil guard; make one with idempotency.New")
	case p.MaxBody < 0:
		panic(fmt.Sprintf("httpapi: Policy.MaxBody is %d; give a positive number of bytes, or 0 for %d", p.MaxBody, defaultMaxBody))
	case p.MaxResponse < 0:
		panic(fmt.Sprintf("httpapi: Policy.MaxResponse is %d; give a positive number of bytes, or 0 for %d", p.MaxResponse, defaultMaxResponse))
	case p.Docs != "" && !isURL(p.Docs):
		panic(fmt.Sprintf("httpapi: Policy.Docs is %q; give an absolute http or https URL", p.Docs))
	}
	if p.MaxBody == 0 {
		p.MaxBody = defaultMaxBody
	}
	if p.MaxResponse == 0 {
		p.MaxResponse = defaultMaxResponse
	}
	if p.NoEffect == nil {
		p.NoEffect = refused
	}
	g = g.With(idempotency.CallOptions{Lease: p.Lease, Expiry: p.Expiry})
	if err := g.Validate(); err != nil {
		panic("httpapi: Policy: " + err.Error())
	}
	return p, g
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && !strings.ContainsAny(s, `<>" `)
}

// refused tells the statuses by which a handler says that it did nothing.
func refused(status int) bool {
	return status < http.StatusInternalServerError && status != http.StatusRequestTimeout && status != statusClientClosed
}

// stores reports whether a refusal is the operation's answer for good. What a retry, or the caller's staying, could change is not.
func (p Policy) stores(ctx context.Context, status int, err error) bool {
	return p.StoreRefusal != nil && !fault.Retryable(err) && !errors.Is(err, fault.DBCommitUnknown) && ctx.Err() == nil && p.StoreRefusal(status)
}

// answer sends what came of a guarded request.
func (p Policy) answer(w http.ResponseWriter, r *http.Request, res *Response, replayed bool, err error) {
	if err != nil {
		if p.Docs != "" && aboutKey(err) {
			w.Header().Set("Link", "<"+p.Docs+`>; rel="describedby"`)
		}
		WriteProblem(w, r, err, p.Logger)
		return
	}
	if replayed {
		w.Header().Set(replayedHeader, "true")
	}
	res.Write(w, r)
}

// aboutKey reports whether err is one of the errors that the draft gives a status to, or would.
func aboutKey(err error) bool {
	switch fault.CodeOf(err) {
	case fault.IdempotencyKeyRequired, fault.IdempotencyKeyInvalid, fault.IdempotencyKeyReused, fault.IdempotencyInProgress, fault.IdempotencyAbandoned:
		return true
	}
	return false
}
