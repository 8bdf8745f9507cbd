// Package pginbox keeps a consumer's messages in PostgreSQL, in caskeleton.inbox_message of the stream "inbox".
//
// Who waits for whom: a claim inserts the row of its message, or updates the one that counted it, and holds it to the end of its
// transaction. Whatever else comes for the same message waits there, at most lock_timeout; other messages never do. ON CONFLICT DO NOTHING
// keeps the transaction alive where the row is there already.
package pginbox
