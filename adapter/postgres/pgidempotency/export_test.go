package pgidempotency

// Completed is the witness of a Complete.
var Completed = completed

// JoinedSQL are the statements that run in the transaction of a caller.
var JoinedSQL = []string{startSQL, startBesideSQL, completeSQL, completeLargeSQL}

// Statements whose plans are looked at.
const (
	ListFewSQL = listSQL + executing + listOrder
	ExpireSQL  = expireSQL
	ReapSQL    = reapSQL
	FindSQL    = findSQL
)
