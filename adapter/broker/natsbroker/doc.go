// Package natsbroker delivers the outbox's events through NATS JetStream, and hands a stream's messages to an inbox.
//
// A [Stream] is checked before anything is published to it, and again after every reconnect: an acknowledgement is worth what the
// server's settings make of it. A [Publisher] writes one event after the other and counts what the server named as stored. A [Consumer]
// acknowledges a message when its effect is committed.
//
// Subjects are <prefix>.<aggregate type>.<event type>. The dots of an event type divide it into tokens, as subjects do, so that a
// consumer can ask for "events.order.order.*". Everything else that is not a letter, a digit, "-", "_" or "~" is percent-encoded; an empty
// token is "%".
//
// Messages are CloudEvents 1.0 in binary mode: the payload is the body, attributes are headers (ce-id, ce-source, ce-type, ce-subject,
// ce-time and the extensions aggregatetype, aggregateid, aggregateversion, aggregatesequence and schemaversion), percent-encoded as the
// HTTP binding has it. The event's own headers travel as "hdr-<name>", so that none can pass for one that the server or the consumer
// obeys; the W3C trace context (traceparent, tracestate, baggage) keeps its names.
package natsbroker
