package idempotency

import "errors"

var (
	// ErrRejected is returned by an operation, beside a value, to say: undo what was done, and yet store the value as the answer that
	// every repeat gets. It is for refusals that would not change if the request were sent again.
	ErrRejected = errors.New("idempotency: rejected; the value is the answer")
	// ErrStale is what a driver tells an owner whose claim is not its own any more; nothing was changed.
	ErrStale = errors.New("idempotency: the claim is held by another operation, or gone")
	// ErrOtherSecret is what a driver says of a secret that is not the one its records were made with.
	ErrOtherSecret = errors.New("idempotency: the store knows another secret")
	// ErrAnswerTooLarge fails an operation whose answer could not be stored, before it commits.
	ErrAnswerTooLarge = errors.New("idempotency: the answer is over the inline limit")
)
