package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// verbatim is an answer that is stored as it is.
type verbatim []byte

func (r *verbatim) MarshalBinary() ([]byte, error) { return *r, nil }

func (r *verbatim) UnmarshalBinary(b []byte) error {
	*r = bytes.Clone(b)
	return nil
}

// sizes is a driver that notes how answers are given to it.
type sizes struct {
	idempotency.Driver

	given []idempotency.Answer
}

func (s *sizes) Complete(ctx context.Context, t *tx.Tx, c idempotency.Claim, a idempotency.Answer) error {
	s.given = append(s.given, a)
	return s.Driver.Complete(ctx, t, c, a)
}

func (s *sizes) Settle(ctx context.Context, c idempotency.Claim, from, to idempotency.State, a idempotency.Answer) error {
	s.given = append(s.given, a)
	return s.Driver.Settle(ctx, c, from, to, a)
}

// 8 KiB is the largest answer that is kept in its record.
func TestTheSizeOfAnAnswerSaysWhereItIsKept(t *testing.T) {
	for name, kept := range map[string]*objects{"by the driver": nil, "by a response store": {kept: map[idempotency.Ref][]byte{}}} {
		t.Run(name, func(t *testing.T) {
			s := &sizes{Driver: memory.NewRecords(nil)}
			o := idempotency.Options{AnswerLimit: 10_000}
			if kept != nil {
				o.Responses = kept
			}
			g := guardOn(t, s, o, "1")
			ways := map[string]func(k idempotency.Key, v verbatim) (idempotency.Outcome[verbatim], error){
				"stored in the transaction": func(k idempotency.Key, v verbatim) (idempotency.Outcome[verbatim], error) {
					return idempotency.Do(t.Context(), g, k, fp, func(context.Context, *tx.Tx) (verbatim, error) { return v, nil })
				},
				"a refusal": func(k idempotency.Key, v verbatim) (idempotency.Outcome[verbatim], error) {
					return idempotency.Do(t.Context(), g, k, fp, func(context.Context, *tx.Tx) (verbatim, error) { return v, idempotency.ErrRejected })
				},
				"external": func(k idempotency.Key, v verbatim) (idempotency.Outcome[verbatim], error) {
					return idempotency.DoExternal(t.Context(), g, k, fp, func(context.Context, *idempotency.Execution) (verbatim, error) { return v, nil })
				},
			}
			for way, store := range ways {
				for size, large := range map[int]bool{0: false, 8191: false, 8192: false, 8193: true, 10_000: true} {
					k, v := key, verbatim(bytes.Repeat([]byte{0xff}, size))
					k.Client = fmt.Sprint(len(s.given))
					_, err := store(k, v)
					require.NoError(t, err)
					given := s.given[len(s.given)-1]
					require.Equal(t, large && kept == nil, given.Large, "%s, %d bytes", way, size)
					require.Equal(t, large && kept != nil, given.Ref != "", "%s, %d bytes", way, size)
					out, err := store(k, nil)
					require.NoError(t, err)
					require.True(t, out.Replayed)
					require.True(t, bytes.Equal(v, out.Value), "%s, %d bytes", way, size)
				}
			}
		})
	}
}

func TestAnAnswerOf16MiBIsTheLargest(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	for size, want := range map[int]error{16 << 20: nil, 16<<20 + 1: idempotency.ErrAnswerTooLarge} {
		k := key
		k.Client = fmt.Sprint(size)
		_, err := idempotency.Do(t.Context(), w.Guard, k, fp, func(context.Context, *tx.Tx) (verbatim, error) { return make(verbatim, size), nil })
		require.ErrorIs(t, err, want, "%d bytes", size)
	}
}
