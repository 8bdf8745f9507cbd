package inbox

import (
	"context"

	"caskeleton.dev/tx"
)

// Verdict is what the store had of a message.
type Verdict int

// What a driver may find.
const (
	Fresh    Verdict = iota + 1 // nothing
	Retried                     // only that it was counted, so it has failed before or its outcome is not known (RECEIVED)
	Done                        // it has taken effect (COMPLETED)
	Settling                    // it waits for an operator (RECOVERY_REQUIRED)
)

// Driver keeps which messages a consumer has seen. Where another transaction has the same message open, each method waits for it, at most
// lock_timeout, and then fails with DB_LOCK_TIMEOUT. Safe for concurrent use.
type Driver interface {
	// Claim is the first statement of t. It marks the message COMPLETED, as of the commit of t, where it finds it Fresh or Retried, and
	// changes nothing otherwise. No unique violation aborts t.
	Claim(ctx context.Context, t *tx.Tx, consumer, id string) (Verdict, error)
	// Attempt counts that the message is tried, in a statement that commits on its own, and returns the count. Where the message is
	// COMPLETED or RECOVERY_REQUIRED it changes nothing and returns 0.
	Attempt(ctx context.Context, consumer, id string) (int, error)
	// Park makes the message RECOVERY_REQUIRED, in a statement that commits on its own, unless it is COMPLETED or RECOVERY_REQUIRED:
	// then it changes nothing and returns [Done] or [Settling]. The texts of m are storable: valid UTF-8 without NUL, and no nil map.
	Park(ctx context.Context, consumer string, m Message, attempts int, reason string) (Verdict, error)
}
