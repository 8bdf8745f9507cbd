package idempotencytest

// DriverChecks is for the test that has them fail.
var DriverChecks = driverChecks
