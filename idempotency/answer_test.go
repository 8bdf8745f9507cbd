package idempotency_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// note is an answer with a form of its own, which JSON would lose: it has no exported field.
type note struct{ text string }

func (n *note) MarshalBinary() ([]byte, error) { return []byte("note " + n.text), nil }

func (n *note) UnmarshalBinary(data []byte) error {
	text, ok := strings.CutPrefix(string(data), "note ")
	if !ok {
		return errors.New("no note")
	}
	n.text = text
	return nil
}

func (*note) AnswerForm() string { return "note" }

// blob is one whose form cannot be recognised.
type blob struct{ text string }

func (b blob) MarshalBinary() ([]byte, error)     { return []byte(b.text), nil }
func (b *blob) UnmarshalBinary(data []byte) error { b.text = string(data); return nil }

type onlyOut struct{ N int }

func (onlyOut) MarshalBinary() ([]byte, error) { return nil, nil }

type onlyIn struct{ N int }

func (*onlyIn) UnmarshalBinary([]byte) error { return nil }

// repeats runs an operation of each kind twice, and returns what was stored by the first and what the repeats got.
func repeats[T any](t *testing.T, v T) (stored []string, got []T) {
	t.Helper()
	for _, external := range []bool{false, true} {
		s := newStore()
		g, _ := newGuard(t, s, nil)
		for _, replayed := range []bool{false, true} {
			var out idempotency.Outcome[T]
			var err error
			if external {
				out, err = idempotency.DoExternal(t.Context(), g, key, fp, func(context.Context, *idempotency.Execution) (T, error) { return v, nil })
			} else {
				out, err = idempotency.Do(t.Context(), g, key, fp, func(context.Context, *tx.Tx) (T, error) { return v, nil })
			}
			require.NoError(t, err)
			require.Equal(t, replayed, out.Replayed)
			if replayed {
				got = append(got, out.Value)
			}
		}
		stored = append(stored, string(s.only(t).Payload))
	}
	return stored, got
}

func TestAnAnswerComesBackAsWhatItWas(t *testing.T) {
	stored, notes := repeats(t, note{"hi"})
	require.Equal(t, []string{"note hi", "note hi"}, stored)
	require.Equal(t, []note{{"hi"}, {"hi"}}, notes)
	stored, pointers := repeats(t, &note{"hi"})
	require.Equal(t, []string{"note hi", "note hi"}, stored)
	require.Equal(t, []*note{{"hi"}, {"hi"}}, pointers)
	stored, blobs := repeats(t, &blob{"hi"})
	require.Equal(t, []string{"hi", "hi"}, stored)
	require.Equal(t, []*blob{{"hi"}, {"hi"}}, blobs)
	n := 7
	_, numbers := repeats(t, &n)
	require.Equal(t, []*int{&n, &n}, numbers)
	_, none := repeats[*int](t, nil)
	require.Equal(t, []*int{nil, nil}, none)
}

func TestAnAnswerThatIsNilIsNotStored(t *testing.T) {
	s := newStore()
	g, _ := newGuard(t, s, nil)
	_, err := idempotency.Do(t.Context(), g, key, fp, func(context.Context, *tx.Tx) (*note, error) { return nil, nil })
	require.ErrorContains(t, err, "it is nil")
	require.Empty(t, s.rows)
}

func refusesType[T any](t *testing.T, says string) {
	t.Helper()
	s := newStore()
	g, _ := newGuard(t, s, nil)
	_, err := idempotency.Do[T](t.Context(), g, key, fp, nil)
	require.ErrorContains(t, err, says)
	_, err = idempotency.DoExternal[T](t.Context(), g, key, fp, nil)
	require.ErrorContains(t, err, says)
	require.Empty(t, s.calls, "before anything is looked up")
}

func TestTypesThatWouldNotComeBackAreRefused(t *testing.T) {
	refusesType[any](t, "interface {} cannot be read back")
	refusesType[*error](t, "*error cannot be read back")
	refusesType[onlyOut](t, "idempotency_test.onlyOut has one of")
	refusesType[*onlyIn](t, "*idempotency_test.onlyIn has one of")
	refusesType[**note](t, "**idempotency_test.note is a pointer to a pointer; return *idempotency_test.note")
}

// raw is what an operator has, and nothing else is known of.
type raw []byte

func (r raw) MarshalBinary() ([]byte, error) { return r, nil }

func settles[T any](t *testing.T, accepted, refused []string) {
	t.Helper()
	for _, settlement := range []func(raw) idempotency.Settlement{idempotency.CompletedWith[raw], idempotency.RejectedWith[raw]} {
		for _, text := range append(accepted, refused...) {
			w := newWhole(t, idempotency.Options{})
			fails := func(context.Context, *idempotency.Execution) (v T, err error) { return v, errBoom }
			_, err := idempotency.DoExternal(t.Context(), w.Guard, key, fp, fails)
			require.ErrorIs(t, err, errBoom)
			e, err := w.Show(t.Context(), key)
			require.NoError(t, err)
			err = w.Reconcile(t.Context(), e.Claim, settlement(raw(text)))
			if len(refused) > 0 && text == refused[0] {
				require.ErrorIs(t, err, idempotency.ErrOtherForm, text)
				now, err := w.ShowScope(t.Context(), e.Scope)
				require.NoError(t, err)
				require.Equal(t, e, now)
				continue
			}
			require.NoError(t, err, text)
			_, err = idempotency.DoExternal(t.Context(), w.Guard, key, fp, fails)
			require.NoError(t, err, "a repeat reads it")
		}
	}
}

// An operation is settled by what its repeats can read.
func TestASettlementHasTheFormOfTheAnswer(t *testing.T) {
	settles[note](t, []string{"note ", "note {}"}, []string{`{"text":"note "}`})
	settles[*note](t, []string{"note x"}, []string{"note"})
	settles[string](t, []string{`"paid"`}, []string{"paid"})
	settles[map[string]int](t, []string{`{}`}, []string{"note {}"})
	settles[blob](t, []string{"", "{}", "note x"}, nil)
}
