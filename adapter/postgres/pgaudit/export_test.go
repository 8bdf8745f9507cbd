package pgaudit

// Statements that run in the transaction of a caller, and whose plans are looked at.
const (
	RecordSQL = recordSQL
	OfSQL     = ofSQL
)
