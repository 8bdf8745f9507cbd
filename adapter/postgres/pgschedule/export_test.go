package pgschedule

// The statements, for the tests of their plans.
const (
	PruneSQL   = pruneSQL
	HistorySQL = historySQL
)
