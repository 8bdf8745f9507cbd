package embedded

import "errors"

// Sentinels of this package; the errors that wrap them say what is wrong and how to mend it.
var (
	// ErrNoPostgres means that neither the npm package nor a PostgreSQL of the system can be had.
	ErrNoPostgres = errors.New("no PostgreSQL to run")
	// ErrDataVersion means that the data directory was made by another major version than the binaries have.
	ErrDataVersion = errors.New("the data directory belongs to another PostgreSQL version")
	// ErrUntrusted means that a directory could have been prepared, or could be changed, by somebody else.
	ErrUntrusted = errors.New("directory is not to be trusted")
)

// errExited means that the server which was waited for has ended.
var errExited = errors.New("PostgreSQL exited")
