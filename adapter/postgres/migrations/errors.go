package migrations

import (
	"errors"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
)

// What [Migrator] refuses. The error returned names the stream, the file or versions, and the way out; match with errors.Is.
var (
	// ErrBehind means that the binary has files which the database has not seen.
	ErrBehind error = fault.Text("the database is behind this binary")
	// ErrAhead means that the database has versions above the binary's, under [AheadRefuse].
	ErrAhead error = fault.Text("the database is ahead of this binary")
	// ErrChanged means that a file is not what it was when it was applied.
	ErrChanged error = fault.Text("an applied file was changed")
	// ErrLate means that a file was added below a version already applied. It is never applied out of order.
	ErrLate error = fault.Text("a file was added below an applied version")
	// ErrMissing means that a version was applied, is below the binary's latest, and has no file in the binary.
	ErrMissing error = fault.Text("an applied file is missing from this binary")
	// ErrHistoryLost means that checksums tell of applied versions which the stream's history does not hold.
	ErrHistoryLost error = fault.Text("the history of the stream was lost")
	// ErrLocked means that another session held the stream's migration lock for longer than Options.LockTimeout.
	ErrLocked error = fault.Text("another session holds the migration lock")
	// ErrPooler means that the DSN leads through a pooler, behind which the migration lock would be anybody's.
	ErrPooler error = fault.Text("migrations: the DSN leads through a pooler, where the migration lock would belong to a session that others use: give the address of the server itself (APP_MIGRATION_DSN, or DATABASE_URL of the migrate command)")
)

// told returns err as it may be shown: the server's message repeats values of the data, and that of the network hosts.
func told(err error) error {
	_, server := errors.AsType[*pgconn.PgError](err)
	_, network := errors.AsType[*net.OpError](err)
	if server || network {
		return postgres.Diagnose(err)
	}
	return err
}

var errSessionLost error = fault.Text("the migration session was lost")
