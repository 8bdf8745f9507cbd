package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/reqctx"
	"caskeleton.dev/tx"
)

// idempotencyKeyHeader is the request header of the IETF draft "The Idempotency-Key HTTP Header Field".
const idempotencyKeyHeader = "Idempotency-Key"

// replayedHeader marks an answer that comes from the store.
const replayedHeader = "Idempotent-Replayed"

const defaultMaxBody = 1 << 20

// Request is a request whose body was read.
type Request struct {
	*http.Request
	Body  []byte
	Input any // what Policy.Decode made of the body
}

// Policy is how a route is guarded. The zero value is the default.
type Policy struct {
	// MaxBody bounds the request body, in bytes; 0 means 1 MiB.
	MaxBody int64
	// Decode turns the body into Request.Input, and refuses what breaks a rule, before a key is claimed and the database is touched.
	Decode func(r *Request) (any, error)
	// StoreRefusal says for which statuses from 400 up a refusal is stored and replayed, where the default is for none: the transaction is
	// rolled back, and a repeat runs again. Failures that are retryable are never stored.
	StoreRefusal func(status int) bool
	// Logger gets what clients do not; nil means slog.Default().
	Logger *slog.Logger
}

// errRefused ends a transaction whose answer is a refusal that is not stored.
var errRefused = errors.New("httpapi: refused")

// Transactional guards h by the Idempotency-Key of each request. The body is read, bounded, and fingerprinted; then h runs in a transaction
// that stores its response as its last statement; and only after COMMIT is the response written. A repeat is answered from the store,
// with "Idempotent-Replayed: true".
//
// A response of 400 or more rolls the transaction back, as an error does, which is answered as a problem. The principal and the tenant of
// the scope come from [reqctx], so authenticate before.
//
// Answers: 400 IDEMPOTENCY_KEY_REQUIRED or IDEMPOTENCY_KEY_INVALID, 422 IDEMPOTENCY_KEY_REUSED, 409 IDEMPOTENCY_IN_PROGRESS with
// Retry-After, 409 IDEMPOTENCY_ABANDONED, and what [ReadBody], [idempotency.Do] and h refuse.
//
// Like [http.ServeMux.Handle] it panics on what only a programmer can mend: a nil guard, a nil handler or a negative MaxBody.
func Transactional(g *idempotency.Guard, p Policy, h func(ctx context.Context, t *tx.Tx, r *Request) (*Response, error)) http.Handler {
	switch {
	case g == nil:
		panic("httpapi: Transactional has a nil guard; make one with idempotency.New")
	case h == nil:
		panic("httpapi: Transactional has a nil handler; give it the function that answers")
	case p.MaxBody < 0:
		panic(fmt.Sprintf("httpapi: Policy.MaxBody is %d; give a positive number of bytes, or 0 for %d", p.MaxBody, defaultMaxBody))
	case p.MaxBody == 0:
		p.MaxBody = defaultMaxBody
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res, replayed, err := p.serve(w, r, g, h)
		if err != nil {
			WriteProblem(w, r, err, p.Logger)
			return
		}
		if replayed {
			w.Header().Set(replayedHeader, "true")
		}
		res.Write(w, r)
	})
}

func (p Policy) serve(w http.ResponseWriter, r *http.Request, g *idempotency.Guard,
	h func(context.Context, *tx.Tx, *Request) (*Response, error),
) (_ *Response, replayed bool, _ error) {
	key, err := keyOf(r)
	if err != nil {
		return nil, false, err
	}
	req := &Request{Request: r}
	if req.Body, err = ReadBody(w, r, p.MaxBody); err != nil {
		return nil, false, err
	}
	if p.Decode != nil {
		if req.Input, err = p.Decode(req); err != nil {
			return nil, false, err
		}
	}
	// The concrete path, not the pattern: one key for two resources is two requests.
	fp := idempotency.NewFingerprint(r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type"), req.Body)

	var refusal *Response
	out, err := idempotency.Do(r.Context(), g, key, fp, func(ctx context.Context, t *tx.Tx) (Response, error) {
		res, err := h(ctx, t, req)
		switch {
		case err != nil && !p.stores(ctx, fault.StatusOf(err), err):
			return Response{}, err
		case err != nil:
			res = NewProblem(context.Background(), err).response() // without the id of this one request
		case res == nil:
			return Response{}, errors.New("httpapi: the handler returned neither a response nor an error")
		}
		if err := res.validate(); err != nil {
			return Response{}, err
		}
		switch {
		case res.Status < http.StatusBadRequest:
			return *res, nil
		case p.stores(ctx, res.Status, nil):
			return *res, idempotency.ErrRejected
		}
		refusal = res
		return Response{}, errRefused
	})
	if refusal != nil && errors.Is(err, errRefused) {
		return refusal, false, nil
	}
	return &out.Value, out.Replayed, err
}

// stores reports whether a refusal is the operation's answer for good. What a retry, or the caller's staying, could change is not.
func (p Policy) stores(ctx context.Context, status int, err error) bool {
	return p.StoreRefusal != nil && !fault.Retryable(err) && !errors.Is(err, fault.DBCommitUnknown) && ctx.Err() == nil && p.StoreRefusal(status)
}

// keyOf returns the scope of a request. The route is the pattern that matched, without its method and host.
func keyOf(r *http.Request) (idempotency.Key, error) {
	client, err := clientKey(r.Header.Values(idempotencyKeyHeader))
	if err != nil {
		return idempotency.Key{}, err
	}
	route := r.URL.EscapedPath()
	if i := strings.IndexByte(r.Pattern, '/'); i >= 0 {
		route = r.Pattern[i:]
	}
	return idempotency.Key{
		Tenant: reqctx.Tenant(r.Context()), Principal: reqctx.Principal(r.Context()), Method: r.Method, Route: route, Client: client,
	}, nil
}

// clientKey reads the header as the draft has it, a quoted string (RFC 9651, 3.3.3), and as most clients send it, bare. Both spell one key.
func clientKey(values []string) (string, error) {
	invalid := func(problem string) error {
		return &fault.Error{Code: fault.IdempotencyKeyInvalid, Op: "httpapi.Transactional", Fields: []fault.Field{
			{Path: idempotencyKeyHeader, Problem: problem, Fix: "send one header of 1 to 255 visible ASCII characters, a UUID for instance"},
		}}
	}
	switch {
	case len(values) == 0:
		return "", fault.New(fault.IdempotencyKeyRequired, "httpapi.Transactional", nil)
	case len(values) > 1:
		return "", invalid("is sent more than once")
	}
	key := values[0]
	if inner, ok := strings.CutPrefix(key, `"`); ok {
		if key, ok = strings.CutSuffix(inner, `"`); !ok || strings.ContainsAny(key, `"\`) {
			return "", invalid("opens with a quote and is not a plain quoted string")
		}
	}
	if key == "" {
		return "", invalid("is empty")
	}
	return key, nil
}
