package pgoutbox

// The statements, for tests that look at their plans.
const (
	ClaimSQL   = claimSQL
	ReadSQL    = readSQL
	SettleSQL  = settleSQL
	NextDueSQL = nextDueSQL
	AppendSQL  = appendSQL
	LockSQL    = lockSQL
	PinSQL     = pinSQL
)
