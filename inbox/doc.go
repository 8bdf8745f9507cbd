// Package inbox makes a message take effect once per consumer, in the same transaction as the effect.
package inbox
