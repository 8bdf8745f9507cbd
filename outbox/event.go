package outbox

import "time"

// Event is something that happened to an aggregate, as it is recorded and as it is delivered.
type Event struct {
	ID               string            // UUID; "" means that Append makes one of version 7
	Type             string            // what happened: "order.placed"
	SchemaVersion    int               // of the payload; 0 means 1
	AggregateType    string            // what it happened to: "order"
	AggregateID      string            // which one; events of one aggregate are delivered in the order of their commits
	AggregateVersion int64             // the aggregate's version after the event; 0 means that it has none
	Payload          []byte            // opaque to the kit
	ContentType      string            // of the payload; "" means application/json
	Headers          map[string]string // carried along; the trace context is added by Append
	OccurredAt       time.Time         // zero means the time at which it is recorded

	// Set on delivery, and ignored by Append.
	Sequence   int64     // counts the aggregate's events from 1, without holes
	RecordedAt time.Time // by the database's clock; never goes back within an aggregate
}

// Lane names the events of one aggregate.
type Lane struct{ AggregateType, AggregateID string }

// Lane returns the lane that e travels in.
func (e Event) Lane() Lane { return Lane{e.AggregateType, e.AggregateID} }
