package pgidempotency

// Completed is the witness of a Complete.
var Completed = completed
