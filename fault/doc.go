// Package fault is the failure vocabulary of the kit: what went wrong (a [Code]), of which kind it is (a [Category]), whether the
// same caller may try again, and which sentence a client may be shown. Everything else about a failure, its cause above all, is for
// the log alone.
//
// An [Error] carries a code up through the rings. Ask about an error with errors.Is and a code, or with [CodeOf], [Retryable],
// [RetryAfter] and [FieldsOf]; never match its text.
//
// The kit's codes are generated from registry/error-codes.yaml. A service makes its own with [NewCode], from the same generator or by hand.
package fault
