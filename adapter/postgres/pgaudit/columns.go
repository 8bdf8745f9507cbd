package pgaudit

import (
	"fmt"

	"caskeleton.dev/audit"
)

// Columns are those of a stamp, in the order of [Values] and [Fields].
const Columns = "created_at, created_by, updated_at, updated_by"

// Values returns the values of [Columns] for an INSERT whose parameter $n is the actor: reqctx.Actor.
func Values(n int) string {
	return fmt.Sprintf("transaction_timestamp(), %s, transaction_timestamp(), $%d::text", acting(n), n)
}

// Set returns the assignments of an UPDATE, or of ON CONFLICT DO UPDATE, whose parameter $n is the actor: reqctx.Actor. The trigger keeps
// updated_at from going back.
func Set(n int) string {
	return fmt.Sprintf("updated_at = transaction_timestamp(), updated_by = %s", acting(n))
}

// acting is the parameter, and tells the trigger on the way.
func acting(n int) string { return fmt.Sprintf("set_config('%s', $%d::text, true)", setting, n) }

// Fields returns what to scan [Columns] into.
func Fields(s *audit.Stamp) []any {
	return []any{&s.CreatedAt, &s.CreatedBy, &s.UpdatedAt, &s.UpdatedBy}
}
