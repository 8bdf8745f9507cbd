package idempotency

import "caskeleton.dev/fault"

var (
	// ErrRejected is returned by an operation, beside a value, to say: undo what was done, and yet store the value as the answer that
	// every repeat gets. It is for refusals that would not change if the request were sent again.
	ErrRejected error = fault.Text("idempotency: rejected; the value is the answer")
	// ErrNoEffect is returned by an operation of [DoExternal], alone or wrapped with its reason, to say: nothing took effect anywhere, and
	// a repeat may run. Any other error leaves open what was done.
	ErrNoEffect error = fault.Text("idempotency: nothing took effect")
	// ErrStale is what an owner is told whose claim is not its own any more, and an operator whose record has changed; nothing was changed.
	ErrStale error = fault.Text("idempotency: the claim is held by another operation, or gone")
	// ErrRival is what a driver tells the owner of a record beside which there is one of the same key under another version.
	ErrRival error = fault.Text("idempotency: the key is claimed under another version too")
	// ErrOtherSecret is what a driver says of secrets that are not those its records were made with.
	ErrOtherSecret error = fault.Text("idempotency: the store knows another secret")
	// ErrAnswerTooLarge fails an operation whose answer could not be stored, before it commits.
	ErrAnswerTooLarge error = fault.Text("idempotency: the answer is over the limit")
	// ErrOtherForm refuses a settlement by an answer that the operation does not give: of an HTTP route, for instance, one without a status.
	ErrOtherForm error = fault.Text("idempotency: the answer is not of the form that repeats of the operation read")
	// ErrNoRecord says that there is no record of a key or a scope.
	ErrNoRecord error = fault.Text("idempotency: there is no such record")
)

var errNested error = fault.Text("idempotency: a keyed operation commits by itself; begin it outside of the transaction, with the context from before")
