// Package outbox records events in the transaction that they belong to and delivers them afterwards: if, and only if, it commits, in
// commit order within an aggregate, at least once, under an id that stays the same.
package outbox
