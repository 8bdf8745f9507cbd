package pgidempotency

// Completed is the witness of a Complete.
var Completed = completed

// JoinedSQL are the statements that run in the transaction of a caller.
var JoinedSQL = []string{startSQL, startBesideSQL, completeSQL, completeLargeSQL, settleSQL, settleLargeSQL, releaseSQL, ofVersionSQL, retireSQL}

// Statements whose plans are looked at.
const (
	ClaimSQL       = claimSQL
	ClaimAmongSQL  = claimAmongSQL
	ReadSQL        = readSQL
	ReadAmongSQL   = readAmongSQL
	TakeOverSQL    = takeOverSQL
	StartBesideSQL = startBesideSQL
	ExecuteSQL     = executeSQL
	ListFewSQL     = listSQL + executing + listOrder
	ListManySQL    = listSQL + listOrder
	ExpireSQL      = expireSQL
	ReapSQL        = reapSQL
	LiveSQL        = liveSQL
	FindSQL        = findSQL
	OfVersionSQL   = ofVersionSQL
)
