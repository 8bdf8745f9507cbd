//go:build e2e

package pgidempotency_test

import "testing"

func TestStatementsReadLittleOfAMillion(t *testing.T) { readLittle(t, 1_000_000) }
