package idempotency

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
)

// encode turns an answer into what is stored: by its own MarshalBinary where it has one, as JSON otherwise.
func encode[T any](v *T) ([]byte, error) {
	var payload []byte
	var err error
	if m, ok := any(v).(encoding.BinaryMarshaler); ok {
		payload, err = m.MarshalBinary()
	} else {
		payload, err = json.Marshal(v)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("idempotency: the answer cannot be stored: %w", err)
	case payload == nil:
		payload = []byte{} // NULL would read as "no answer"
	}
	return payload, nil
}

func decode[T any](payload []byte) (T, error) {
	var v T
	var err error
	if m, ok := any(&v).(encoding.BinaryUnmarshaler); ok {
		err = m.UnmarshalBinary(payload)
	} else {
		err = json.Unmarshal(payload, &v)
	}
	if err != nil {
		return v, fmt.Errorf("idempotency: the stored answer cannot be read: %w", err)
	}
	return v, nil
}

// answer makes of a value what is stored with the record of c.
func answer[T any](ctx context.Context, g *Guard, c Claim, v *T) (Answer, error) {
	payload, err := encode(v)
	if err != nil {
		return Answer{}, err
	}
	return g.store(ctx, c, payload)
}

// store says where a payload is kept. Where it is large, and there is a [ResponseStore], it is there already.
func (g *Guard) store(ctx context.Context, c Claim, payload []byte) (Answer, error) {
	switch {
	case len(payload) > g.opts.AnswerLimit:
		return Answer{}, fmt.Errorf("%w: %d bytes, %d allowed", ErrAnswerTooLarge, len(payload), g.opts.AnswerLimit)
	case len(payload) <= g.opts.InlineLimit:
		return Answer{Payload: payload}, nil
	case g.opts.Responses == nil:
		return Answer{Payload: payload, Large: true}, nil
	}
	ref := newRef(c)
	if err := g.opts.Responses.Put(ctx, ref, payload); err != nil {
		return Answer{}, fmt.Errorf("idempotency: the answer of %d bytes was not stored: %w", len(payload), err)
	}
	return Answer{Ref: ref}, nil
}

// load returns the payload of an answer, from wherever it is.
func (g *Guard) load(ctx context.Context, a Answer) ([]byte, error) {
	if a.Ref == "" {
		return a.Payload, nil
	}
	if g.opts.Responses == nil {
		return nil, fmt.Errorf("idempotency: the answer is in a response store, as %s, and Options.Responses is not set", a.Ref)
	}
	payload, err := g.opts.Responses.Get(ctx, a.Ref)
	if err != nil {
		return nil, fmt.Errorf("idempotency: the stored answer %s cannot be read: %w", a.Ref, err)
	}
	return payload, nil
}
