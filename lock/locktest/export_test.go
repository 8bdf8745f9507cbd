package locktest

import "time"

// DriverChecks is for the test that has them fail.
var DriverChecks = driverChecks

// Hasty returns s with checks that wait briefly for what a broken driver does not do.
func Hasty(s Store) Store {
	s.soon = 400 * time.Millisecond
	return s
}
