// Package idempotency makes a keyed operation take effect once, and gives a repeat the first answer.
//
// [Do] is for operations whose effects are all in this database. It claims the key in a statement of its own, runs the operation in a
// transaction whose first statement locks the claim and whose last one stores the answer, and so ties answer and effect to one
// COMMIT: after a crash either both are there, and a repeat is answered from the store, or neither is, and a repeat runs again.
//
// What a client sends as its key is never stored: a scope is a digest of tenant, principal, method, route and key (see [Keyring]).
// A [Fingerprint] of the request tells a repeat from a key that was used again for something else.
package idempotency
