// Package lock is an efficiency lock: it keeps work from being done twice at the same time, and is no guard of correctness, which stays with
// database constraints (unique keys, optimistic versions). There is no fencing token.
package lock
