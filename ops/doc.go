// Package ops has what operators do, for the command line and the console alike: look, and settle. Whoever acts says who and why, and both
// are logged with what was changed.
package ops
