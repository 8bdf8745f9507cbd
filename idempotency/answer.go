package idempotency

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	"caskeleton.dev/fault"
)

// Formed is implemented by types of answers whose stored form can be recognised: what MarshalBinary returns begins with AnswerForm, a word
// of lower-case letters, and a space. [Guard.Reconcile] then refuses an answer that repeats of the operation could not read.
type Formed interface {
	encoding.BinaryMarshaler
	AnswerForm() string
}

// formJSON is that of types without a MarshalBinary of their own.
const formJSON = "json"

var (
	binaryMarshaler   = reflect.TypeFor[encoding.BinaryMarshaler]()
	binaryUnmarshaler = reflect.TypeFor[encoding.BinaryUnmarshaler]()
)

// formOf returns the form of a type of answers, "" where it has one that cannot be recognised, and refuses types that would not be read back
// as they were.
func formOf[T any]() (string, error) {
	t := reflect.TypeFor[T]()
	base, pointers := t, 0
	for ; base.Kind() == reflect.Pointer; pointers++ {
		base = base.Elem()
	}
	p := reflect.PointerTo(base)
	marshals, unmarshals := p.Implements(binaryMarshaler), p.Implements(binaryUnmarshaler)
	switch {
	case base.Kind() == reflect.Interface:
		return "", fault.Textf("idempotency: an answer of type %s cannot be read back as what it was; return a type that is no interface", t)
	case marshals != unmarshals:
		return "", fault.Textf("idempotency: an answer of type %s has one of MarshalBinary and UnmarshalBinary; give it both, or neither for JSON", t)
	case !marshals:
		return formJSON, nil
	case pointers > 1:
		return "", fault.Textf("idempotency: an answer of type %s is a pointer to a pointer; return %s", t, p)
	}
	if f, ok := reflect.TypeAssert[Formed](reflect.New(base)); ok {
		return f.AnswerForm(), nil
	}
	return "", nil
}

// accepts refuses a settlement that repeats of the operation could not read. What cannot be recognised is accepted.
func (c Claim) accepts(payload []byte) error {
	form, _, known := strings.Cut(c.Operation, formSeparator)
	if !known || form == formJSON && json.Valid(payload) || form != formJSON && bytes.HasPrefix(payload, []byte(form+" ")) {
		return nil
	}
	return fault.Textf("%w: %s", ErrOtherForm, form)
}

// encode turns an answer into what is stored: by its own MarshalBinary where it has one, as JSON otherwise.
func encode[T any](v T) (payload []byte, err error) {
	m, ok := any(&v).(encoding.BinaryMarshaler)
	if !ok { // of a pointer, or what is in an interface
		m, ok = any(v).(encoding.BinaryMarshaler)
	}
	switch r := reflect.ValueOf(m); {
	case ok && r.Kind() == reflect.Pointer && r.IsNil():
		err = fault.Text("it is nil")
	case ok:
		payload, err = m.MarshalBinary()
	default:
		payload, err = json.Marshal(v)
	}
	switch {
	case err != nil:
		return nil, fault.Textf("idempotency: the answer cannot be stored: %w", err)
	case payload == nil:
		payload = []byte{} // NULL would read as "no answer"
	}
	return payload, nil
}

func decode[T any](payload []byte) (v T, err error) {
	into := any(&v)
	if t := reflect.TypeFor[T](); t.Kind() == reflect.Pointer && t.Implements(binaryUnmarshaler) {
		v, _ = reflect.TypeAssert[T](reflect.New(t.Elem()))
		into = v
	}
	if m, ok := into.(encoding.BinaryUnmarshaler); ok {
		err = m.UnmarshalBinary(payload)
	} else {
		err = json.Unmarshal(payload, into)
	}
	if err != nil {
		return v, fault.Textf("idempotency: the stored answer cannot be read: %w", err)
	}
	return v, nil
}

// answer makes of a value what is stored with the record of c.
func answer[T any](ctx context.Context, g *Guard, c Claim, v T) (Answer, error) {
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
		return Answer{}, fault.Textf("%w: %d bytes, %d allowed", ErrAnswerTooLarge, len(payload), g.opts.AnswerLimit)
	case len(payload) <= g.opts.InlineLimit:
		return Answer{Payload: payload}, nil
	case g.opts.Responses == nil:
		return Answer{Payload: payload, Large: true}, nil
	}
	ref := newRef(c, payload)
	if err := g.opts.Responses.Put(ctx, ref, payload); err != nil {
		return Answer{}, fault.Textf("idempotency: the answer of %d bytes was not stored: %w", len(payload), err)
	}
	return Answer{Ref: ref}, nil
}

// load returns the payload of an answer, from wherever it is.
func (g *Guard) load(ctx context.Context, a Answer) ([]byte, error) {
	if a.Ref == "" {
		return a.Payload, nil
	}
	if g.opts.Responses == nil {
		return nil, fault.Textf("idempotency: the answer is in a response store, as %s, and Options.Responses is not set", a.Ref)
	}
	payload, err := g.opts.Responses.Get(ctx, a.Ref)
	switch {
	case err != nil:
		return nil, fault.Textf("idempotency: the stored answer %s cannot be read: %w", a.Ref, err)
	case !a.Ref.of(payload):
		return nil, fault.Textf("idempotency: the stored answer %s came back as %d bytes that are not those that were put", a.Ref, len(payload))
	}
	return payload, nil
}
