package inbox_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
)

func TestTheKeyIsChecked(t *testing.T) {
	s, runs := newStore(), 0
	in, runner := newInbox(t, s, nil)
	for id, problem := range map[string]string{
		"": "is empty", strings.Repeat("é", 256): "has 256 characters; at most 255 are accepted", "a\x00b": "holds a NUL", "a\xff": "is not valid UTF-8",
	} {
		out, err := in.Handle(t.Context(), inbox.Message{ID: id}, handler(&runs, nil))
		require.ErrorIs(t, err, inbox.ErrInvalidMessage)
		require.Equal(t, inbox.Failed, out)
		require.Equal(t, []fault.Field{{Path: "ID", Problem: problem, Fix: "use 1 to 255 characters of valid UTF-8 without NUL"}}, fault.FieldsOf(err))

		_, err = inbox.New(s, runner, id, nil)
		require.EqualError(t, err, "inbox: consumer "+problem+"; use 1 to 255 characters of valid UTF-8 without NUL")
	}
	_, err := in.Handle(t.Context(), delivery(-1), handler(&runs, nil))
	require.ErrorIs(t, err, inbox.ErrInvalidMessage)
	require.Equal(t, "Deliveries", fault.FieldsOf(err)[0].Path)
	require.Empty(t, s.calls)
	out, err := in.Handle(t.Context(), inbox.Message{ID: strings.Repeat("é", 255)}, handler(&runs, nil))
	require.NoError(t, err)
	require.Equal(t, inbox.Handled, out)
}

func TestWhatIsParkedCanBeStored(t *testing.T) {
	s, runs := newStore(), 0
	in, _ := newInbox(t, s, nil)
	m := inbox.Message{
		ID: "m1", Type: "a\x00", AggregateType: "b\xff", AggregateID: "\x00", ContentType: "\xff", Sequence: 7, Deliveries: 11,
		Payload: []byte("\x00\xff"), Headers: map[string]string{"k\x00": "v\xff"},
	}
	_, err := in.Handle(t.Context(), m, handler(&runs, nil))
	require.NoError(t, err)
	require.Equal(t, inbox.Message{
		ID: "m1", Type: "a\ufffd", AggregateType: "b\ufffd", AggregateID: "\ufffd", ContentType: "\ufffd", Sequence: 7, Deliveries: 11,
		Payload: []byte("\x00\xff"), Headers: map[string]string{"k\ufffd": "v\ufffd"},
	}, s.rows["shipping/m1"].message)
	require.Equal(t, map[string]string{"k\x00": "v\xff"}, m.Headers, "the caller's message is left alone")
}
