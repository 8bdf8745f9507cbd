// Package ops has the use cases of operators, the same for the command line and the console: to look at records, and to settle them.
// Whoever changes something says who they are and why. That is recorded in an [audit.Trail], in the transaction of the change and with what
// was changed, so that there is neither without the other; it is logged as well.
package ops
