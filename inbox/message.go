package inbox

// Message is what a broker delivered.
type Message struct {
	ID            string // stays the same over redeliveries; with the consumer's name it is the key
	Type          string // what happened: "order.placed"
	AggregateType string
	AggregateID   string
	Sequence      int64 // of the aggregate's events, 0 if unknown
	Payload       []byte
	ContentType   string
	Headers       map[string]string
	Deliveries    int // how often the broker has delivered it, this time included; 0 where it does not count
}
