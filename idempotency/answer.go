package idempotency

import (
	"encoding"
	"encoding/json"
	"fmt"
)

// encode turns an answer into what is stored: by its own MarshalBinary where it has one, as JSON otherwise.
func encode[T any](v *T, limit int) ([]byte, error) {
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
	case len(payload) > limit:
		return nil, fmt.Errorf("%w: %d bytes, %d allowed", ErrAnswerTooLarge, len(payload), limit)
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
