package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
)

// errNoEffect ends an operation of which nothing took effect, and whose answer is not stored.
var errNoEffect = fault.Textf("%w: %w", errRefused, idempotency.ErrNoEffect)

// External guards any handler by the Idempotency-Key of each request, for effects outside of the database, such as a charge at a payment
// provider. The body is read, bounded, and fingerprinted; its record is committed as EXECUTING; the handler runs, with no
// transaction held, into a buffer; its response is stored; and only then is it written. A repeat is answered from the store, with
// "Idempotent-Replayed: true". A router's middleware has the same shape.
//
// A status below 400 completes the operation. A status from 400 up is stored where Policy.StoreRefusal says so, and gives the key back where
// Policy.NoEffect says so. In all other cases, such as a 5xx or a panic, nobody knows what the handler did: the record becomes ABANDONED,
// and every repeat gets IDEMPOTENCY_ABANDONED until [idempotency.Guard.Reconcile] settles it. So it does where the response cannot be kept
// whole, which is answered with 500: one that is flushed or hijacked, has trailers or another length than its Content-Length, or is over
// Policy.MaxResponse.
//
// The handler's context ends when the caller leaves, as always; a handler that should finish nevertheless works under
// [context.WithoutCancel]. It must end within Policy.Lease, or renew it by [ExecutionFrom]; else it is taken for dead.
//
// Answers, scope and panics are those of [Transactional]; the body may be of any media type.
func External(g *idempotency.Guard, p Policy) func(http.Handler) http.Handler {
	if p.Decode != nil {
		panic("httpapi: Policy.Decode is for Transactional; a handler of External reads its body itself")
	}
	p, g = p.ready("External", g)
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("httpapi: External has a nil handler; give it the one to guard")
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p.Optional && len(r.Header.Values(idempotencyKeyHeader)) == 0 {
				next.ServeHTTP(w, r)
				return
			}
			res, replayed, err := p.execute(w, r, g, next)
			p.answer(w, r, res, replayed, err)
		})
	}
}

func (p Policy) execute(w http.ResponseWriter, r *http.Request, g *idempotency.Guard, next http.Handler) (_ *Response, replayed bool, _ error) {
	key, err := p.keyOf(r)
	if err != nil {
		return nil, false, err
	}
	body, err := readAll(w, r, p.MaxBody)
	if err != nil {
		return nil, false, err
	}
	var refusal *Response
	out, err := idempotency.DoExternal(r.Context(), g, key, fingerprint(r, body), func(ctx context.Context, e *idempotency.Execution) (Response, error) {
		res, err := p.record(context.WithValue(ctx, executionKey{}, e), w, r, body, next)
		switch {
		case err != nil:
			return Response{}, err
		case res.Status < http.StatusBadRequest:
			return *res, nil
		case p.stores(ctx, res.Status, nil):
			return *res, idempotency.ErrRejected
		}
		refusal = res
		if p.NoEffect(res.Status) {
			return Response{}, errNoEffect
		}
		return Response{}, errRefused
	})
	if refusal != nil && errors.Is(err, errRefused) {
		return refusal, false, nil
	}
	return &out.Value, out.Replayed, err
}

// record runs the handler and returns what it answered.
func (p Policy) record(ctx context.Context, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) (*Response, error) {
	b := &buffer{header: http.Header{}, limit: p.MaxResponse}
	t := &tracker{ResponseWriter: b}
	r = r.WithContext(ctx)
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	next.ServeHTTP(t, r)
	if outer := trackerOf(w); outer != nil {
		outer.code = t.code
	}
	return b.response(r.Method)
}

type executionKey struct{}

// ExecutionFrom returns the execution that a handler of [External] runs as: its Key is to be sent on to what the handler calls, and Renew
// gives it more time. It returns false where the request is not guarded.
func ExecutionFrom(ctx context.Context) (*idempotency.Execution, bool) {
	e, ok := ctx.Value(executionKey{}).(*idempotency.Execution)
	return e, ok
}
