package pglock

import "time"

const (
	AcquireSQL = acquireSQL
	LookSQL    = lookSQL
	RenewSQL   = renewSQL
	ReleaseSQL = releaseSQL
)

// SetQuiet sets how long a session that hears nothing is believed to be alive.
func (l *Locks) SetQuiet(d time.Duration) { l.quiet = d }
