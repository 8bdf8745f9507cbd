package outbox

import (
	"context"
	"maps"

	"caskeleton.dev/fault"
)

// Route returns a publisher that hands each event to the publisher of its type, and to fallback where its type has none; without a
// fallback such an event fails. A run is split where the publisher changes, and ends at the first event that failed. A broker that is
// down pauses the relay, whichever of them it is.
func Route(byType map[string]Publisher, fallback Publisher) Publisher {
	return route{maps.Clone(byType), fallback}
}

type route struct {
	byType   map[string]Publisher
	fallback Publisher
}

func (r route) Publish(ctx context.Context, run []Event) (int, error) {
	acked := 0
	for acked < len(run) {
		part := r.prefix(run[acked:])
		p := r.of(part[0].Type)
		if p == nil {
			return acked, fault.Textf("outbox: no publisher for events of type %q; add one to the routes, or a fallback", part[0].Type)
		}
		n, err := p.Publish(ctx, part)
		if err != nil || n != len(part) {
			return acked + n, err
		}
		acked += n
	}
	return acked, nil
}

func (r route) of(eventType string) Publisher {
	if p := r.byType[eventType]; p != nil {
		return p
	}
	return r.fallback
}

// prefix returns the events at the front of run that go the same way. Routes are compared by type and not by publisher, which need not
// be comparable.
func (r route) prefix(run []Event) []Event {
	first := r.key(run[0].Type)
	for i, e := range run {
		if r.key(e.Type) != first {
			return run[:i]
		}
	}
	return run
}

// key is the type for a type with a publisher of its own, "" for the others.
func (r route) key(eventType string) string {
	if r.byType[eventType] != nil {
		return eventType
	}
	return ""
}
