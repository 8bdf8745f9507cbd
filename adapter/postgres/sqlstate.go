package postgres

import (
	"github.com/jackc/pgerrcode"

	"caskeleton.dev/fault"
)

// What pgerrcode has no name for.
const (
	classConnection              = "08"
	stateTransactionTimeout      = "25P04" // new in PostgreSQL 17
	routineRevalidateCachedQuery = "RevalidateCachedQuery"
)

// kitStates is the kit's own contribution. PostgreSQL's appendix "Error Codes" says what each state means.
func kitStates() Contribution {
	return Contribution{
		Name: "postgres",
		States: map[string]fault.Code{
			pgerrcode.AdminShutdown:      fault.DBUnavailable,
			pgerrcode.CrashShutdown:      fault.DBUnavailable,
			pgerrcode.CannotConnectNow:   fault.DBUnavailable,
			pgerrcode.IdleSessionTimeout: fault.DBUnavailable,
			pgerrcode.TooManyConnections: fault.DBUnavailable,

			pgerrcode.TransactionResolutionUnknown: fault.DBCommitUnknown,
			pgerrcode.StatementCompletionUnknown:   fault.DBCommitUnknown,

			pgerrcode.SerializationFailure: fault.DBSerializationFailure,
			pgerrcode.DeadlockDetected:     fault.DBDeadlock,
			pgerrcode.LockNotAvailable:     fault.DBLockTimeout,

			pgerrcode.QueryCanceled:                   fault.DBQueryCanceled,
			pgerrcode.IdleInTransactionSessionTimeout: fault.DBTXTimeout,
			stateTransactionTimeout:                   fault.DBTXTimeout,
			// Inside a transaction that was begun READ ONLY this is TX_READ_ONLY instead: see conn.fail.
			pgerrcode.ReadOnlySQLTransaction: fault.DBReadOnly,

			pgerrcode.UniqueViolation:          fault.DBUniqueViolation,
			pgerrcode.ExclusionViolation:       fault.DBUniqueViolation,
			pgerrcode.ForeignKeyViolation:      fault.DBForeignKeyViolation,
			pgerrcode.RestrictViolation:        fault.DBForeignKeyViolation,
			pgerrcode.NotNullViolation:         fault.DBNotNullViolation,
			pgerrcode.CheckViolation:           fault.DBCheckViolation,
			pgerrcode.WithCheckOptionViolation: fault.DBCheckViolation,

			pgerrcode.FeatureNotSupported:        fault.DBStalePlan, // from one routine alone: see refine
			pgerrcode.InvalidSQLStatementName:    fault.DBStalePlan,
			pgerrcode.DuplicatePreparedStatement: fault.DBStalePlan,

			pgerrcode.InvalidCatalogName:    fault.DBAccessDenied, // no such database
			pgerrcode.InsufficientPrivilege: fault.DBAccessDenied,
			pgerrcode.DatabaseDropped:       fault.DBAccessDenied,

			pgerrcode.DiskFull:                   fault.DBServerFault,
			pgerrcode.OutOfMemory:                fault.DBServerFault,
			pgerrcode.ConfigurationLimitExceeded: fault.DBServerFault,
		},
		Classes: map[string]fault.Code{
			classConnection: fault.DBUnavailable,
			"22":            fault.DBInvalidData,
			"28":            fault.DBAccessDenied,
			"54":            fault.DBServerFault,
			"58":            fault.DBServerFault,
			"XX":            fault.DBServerFault,
		},
	}
}
