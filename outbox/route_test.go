package outbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/outbox"
)

func run(types ...string) (events []outbox.Event) {
	for _, t := range types {
		events = append(events, outbox.Event{ID: t, Type: t})
	}
	return events
}

func TestRouteSplitsARunByType(t *testing.T) {
	var calls [][]string
	to := func(name string) outbox.Publisher {
		return &broker{fn: func(_ context.Context, run []outbox.Event) (int, error) {
			call := []string{name}
			for _, e := range run {
				call = append(call, e.Type)
			}
			calls = append(calls, call)
			return len(run), nil
		}}
	}
	types := map[string]outbox.Publisher{"a": to("A"), "b": to("B")}
	p := outbox.Route(types, to("rest"))
	delete(types, "a")
	n, err := p.Publish(t.Context(), run("a", "a", "x", "y", "b", "a"))
	require.NoError(t, err)
	require.Equal(t, 6, n)
	require.Equal(t, [][]string{{"A", "a", "a"}, {"rest", "x", "y"}, {"B", "b"}, {"A", "a"}}, calls)
}

func TestRouteStopsAtTheFirstFailure(t *testing.T) {
	refused := errors.New("refused")
	good, bad := &broker{}, &broker{fn: func(context.Context, []outbox.Event) (int, error) { return 1, refused }}
	n, err := outbox.Route(map[string]outbox.Publisher{"bad": bad}, good).Publish(t.Context(), run("x", "bad", "bad", "y"))
	require.ErrorIs(t, err, refused)
	require.Equal(t, 2, n)
	require.Equal(t, 1, good.runs, "nothing is stored after an event that failed")

	short := &broker{fn: func(context.Context, []outbox.Event) (int, error) { return 1, nil }}
	n, err = outbox.Route(map[string]outbox.Publisher{"short": short}, good).Publish(t.Context(), run("short", "short", "y"))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, 1, good.runs)
}

func TestRouteWithoutAPublisher(t *testing.T) {
	n, err := outbox.Route(map[string]outbox.Publisher{"a": &broker{}}, nil).Publish(t.Context(), run("a", "b"))
	require.Equal(t, 1, n)
	require.EqualError(t, err, `outbox: no publisher for events of type "b"; add one to the routes, or a fallback`)
}
