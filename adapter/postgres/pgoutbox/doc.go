// Package pgoutbox keeps the outbox in PostgreSQL, in the streams "outbox-storage" and "outbox-polling".
//
// An envelope is written once. A counter, one row an aggregate, is what appends of one aggregate queue on until they commit. A lane,
// one row an aggregate with something to deliver, is what relays lease; it exists exactly when the counter's drained_sequence is below
// its last_sequence. An append inserts the lane where it finds the two equal and touches no lane otherwise, so an open transaction
// neither hides what others have committed for its aggregate nor blocks who delivers it. The cost of a claim depends on how many lanes
// it takes, not on how much waits behind them.
//
// Locks are taken in the order control, counter, lane. Who holds a lane takes counters only with SKIP LOCKED.
package pgoutbox
