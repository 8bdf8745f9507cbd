package pglock

import "time"

const (
	AcquireSQL = acquireSQL
	LookSQL    = lookSQL
	RenewSQL   = renewSQL
	ReleaseSQL = releaseSQL
)

// SetQuiet sets how long a session that hears nothing is believed to be alive, and how long it has to show that it is.
func (l *Locks) SetQuiet(quiet, farewell time.Duration) { l.quiet, l.farewell = quiet, farewell }
