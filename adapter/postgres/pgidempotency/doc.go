// Package pgidempotency stores idempotency records in PostgreSQL, in caskeleton.idempotency_record of the stream "idempotency".
//
// Who waits for whom: a claim is an INSERT ... ON CONFLICT DO NOTHING that commits at once, so it meets only committed rows and waits
// for nobody's business transaction. A business transaction holds its row by FOR UPDATE, which a plain read passes and a take-over
// skips, and updates it only by its last statement: an update by the first one would make each duplicate's INSERT wait for its COMMIT.
package pgidempotency
