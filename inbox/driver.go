package inbox

import (
	"context"

	"caskeleton.dev/tx"
)

// Verdict is what the store says of a message as its transaction begins.
type Verdict int

// What a claim in a transaction finds.
const (
	Fresh    Verdict = iota + 1 // claimed: run the handler
	Done                        // it took effect before
	Settling                    // it waits for an operator (RECOVERY_REQUIRED)
)

// Driver keeps which messages a consumer has seen. Safe for concurrent use.
type Driver interface {
	// Claim is the first statement of t: it makes the message's row COMPLETED-to-be, without a unique violation that would abort t. It waits
	// at most lock_timeout (DB_LOCK_TIMEOUT) for another transaction that has the same message open.
	Claim(ctx context.Context, t *tx.Tx, consumer string, m Message) (Verdict, error)
	// Complete is the last statement of t.
	Complete(ctx context.Context, t *tx.Tx, consumer string, m Message) error
	// Attempt counts, in a statement that commits on its own, that a handler is about to run, and returns the count.
	Attempt(ctx context.Context, consumer string, m Message) (int, error)
	// Park makes the row RECOVERY_REQUIRED, with the message and why, in a statement that commits on its own. It changes nothing where
	// the message is completed, and reports false.
	Park(ctx context.Context, consumer string, m Message, reason string) (bool, error)
}
