// Package ops has what operators do, for the command line and the console alike: look, and settle. Whoever acts says who and why. That is kept in an
// [audit.Trail], in the transaction of the change and with what was changed, so that there is neither without the other; it is logged as well.
package ops
