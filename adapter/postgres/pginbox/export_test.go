package pginbox

// JoinedSQL are the statements that run in the transaction of a caller.
var JoinedSQL = []string{claimSQL, retrySQL, stateSQL}
