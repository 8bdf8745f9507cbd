package audittest

// DriverChecks are those of TestDriver.
var DriverChecks = driverChecks
