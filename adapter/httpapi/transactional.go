package httpapi

import (
	"context"
	"errors"
	"net/http"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// Request is a request whose body was read.
type Request struct {
	*http.Request
	Body  []byte
	Input any // what Policy.Decode made of the body
}

// errRefused ends an operation whose answer is a refusal that is not stored.
var errRefused error = fault.Text("httpapi: refused")

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
// Like [http.ServeMux.Handle] it panics on what only a programmer can mend: a nil guard or handler, or a policy that cannot be followed.
func Transactional(g *idempotency.Guard, p Policy, h func(ctx context.Context, t *tx.Tx, r *Request) (*Response, error)) http.Handler {
	switch {
	case h == nil:
		panic("httpapi: Transactional has a nil handler; give it the function that answers")
	case p.Optional || p.NoEffect != nil || p.MaxResponse != 0:
		panic("httpapi: Policy.Optional, NoEffect and MaxResponse are for External; Transactional needs a key, undoes, and has its response in memory already")
	}
	p, g = p.ready("Transactional", g)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res, replayed, err := p.transact(w, r, g, h)
		p.answer(w, r, res, replayed, err)
	})
}

func (p Policy) transact(w http.ResponseWriter, r *http.Request, g *idempotency.Guard,
	h func(context.Context, *tx.Tx, *Request) (*Response, error),
) (_ *Response, replayed bool, _ error) {
	key, err := p.keyOf(r)
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
	var refusal *Response
	out, err := idempotency.Do(r.Context(), g, key, fingerprint(r, req.Body), func(ctx context.Context, t *tx.Tx) (Response, error) {
		res, err := h(ctx, t, req)
		switch {
		case err != nil && !p.stores(ctx, fault.StatusOf(err), err):
			return Response{}, err
		case err != nil:
			res = NewProblem(context.Background(), err).response() // without the id of this one request
		case res == nil:
			return Response{}, fault.Text("httpapi: the handler returned neither a response nor an error")
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
