package outboxtest

// The checks, for the tests that have them fail.
var (
	DriverChecks    = driverChecks
	PublisherChecks = publisherChecks
)
