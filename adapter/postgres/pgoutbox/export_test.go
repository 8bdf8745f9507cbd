package pgoutbox

import "caskeleton.dev/outbox"

// The statements, for tests that look at their plans.
const (
	ClaimSQL   = claimSQL
	ReadSQL    = readSQL
	SettleSQL  = settleSQL
	NextDueSQL = nextDueSQL
	AppendSQL  = appendSQL
	LockSQL    = lockSQL
	LockRowSQL = lockRowSQL
	PinSQL     = pinSQL
)

// AppendArgs are the arguments of AppendSQL.
func AppendArgs(events []outbox.Event) ([]any, error) { return appendArgs(events) }

// Identity is the witness of what Append has recorded.
var Identity = identity
