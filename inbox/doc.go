// Package inbox makes a message take effect once per consumer, in the same transaction as the effect.
//
// [Inbox.Handle] inserts a row for (consumer, message id) as the first statement of a transaction and runs the handler in it. The row is
// inserted as COMPLETED: nobody sees it before the COMMIT that makes the effect visible, so completion needs no statement of its own, and
// after a crash either both are there, and a redelivery is recognised, or neither is, and a redelivery runs.
//
// How often a message was tried is the broker's delivery count where it has one that counts runs. Otherwise the store counts, in statements
// that commit apart from the handler's transaction, since a rollback must not undo the count:
//   - before the handler, for messages that are known to have failed, for those that the broker delivered before ([Message.Redelivered]), and
//     for the first ones after a start, since one of them may be what ended the last process;
//   - after the handler, for any other one that fails.
//
// So a message that succeeds at once costs one statement. A delivery that meets another one of its message in the same process is given
// back, uncounted.
//
// A message that reached the limit is parked: its row becomes RECOVERY_REQUIRED, with payload, headers and reason, and only once that is
// committed is the broker to be told to stop.
//
// A broker's count grows with each delivery, whatever became of it. A consumer should hold its messages, or pause, while the database
// cannot be reached (DB_UNAVAILABLE): giving them back would use their attempts up.
package inbox
