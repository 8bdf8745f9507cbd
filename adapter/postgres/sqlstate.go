package postgres

import "caskeleton.dev/fault"

// SQLSTATEs that the code asks for by name, beyond looking them up in the table.
const (
	stateFeatureNotSupported     = "0A000"
	stateReadOnlyTransaction     = "25006"
	stateIdleInTransaction       = "25P03"
	stateCheckViolation          = "23514"
	stateCompletionUnknown       = "40003"
	stateQueryCanceled           = "57014"
	classConnection              = "08"
	routineRevalidateCachedQuery = "RevalidateCachedQuery"
)

// kitStates is the kit's own contribution. PostgreSQL's appendix "Error Codes" says what each state means.
func kitStates() Contribution {
	return Contribution{
		Name: "postgres",
		States: map[string]fault.Code{
			"57P01": fault.DBUnavailable, // admin_shutdown
			"57P02": fault.DBUnavailable, // crash_shutdown
			"57P03": fault.DBUnavailable, // cannot_connect_now
			"57P05": fault.DBUnavailable, // idle_session_timeout
			"53300": fault.DBUnavailable, // too_many_connections

			"08007":                fault.DBCommitUnknown, // transaction_resolution_unknown
			stateCompletionUnknown: fault.DBCommitUnknown,

			"40001": fault.DBSerializationFailure,
			"40P01": fault.DBDeadlock,
			"55P03": fault.DBLockTimeout,

			stateQueryCanceled:     fault.DBQueryCanceled,
			stateIdleInTransaction: fault.DBTXTimeout,
			"25P04":                fault.DBTXTimeout,
			// Inside a transaction that was begun READ ONLY this is TX_READ_ONLY instead: see conn.fail.
			stateReadOnlyTransaction: fault.DBReadOnly,

			"23505":             fault.DBUniqueViolation,
			"23P01":             fault.DBUniqueViolation, // exclusion_violation
			"23503":             fault.DBForeignKeyViolation,
			"23001":             fault.DBForeignKeyViolation, // restrict_violation
			"23502":             fault.DBNotNullViolation,
			stateCheckViolation: fault.DBCheckViolation,
			"44000":             fault.DBCheckViolation, // with_check_option_violation

			stateFeatureNotSupported: fault.DBStalePlan, // from one routine alone: see refine
			"26000":                  fault.DBStalePlan, // invalid_sql_statement_name
			"42P05":                  fault.DBStalePlan, // duplicate_prepared_statement

			"3D000": fault.DBAccessDenied, // invalid_catalog_name: no such database
			"42501": fault.DBAccessDenied, // insufficient_privilege
			"57P04": fault.DBAccessDenied, // database_dropped

			"53100": fault.DBServerFault, // disk_full
			"53200": fault.DBServerFault, // out_of_memory
			"53400": fault.DBServerFault, // configuration_limit_exceeded
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
