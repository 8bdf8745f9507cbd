package pgtest

import "testing"

func BenchmarkDSN(b *testing.B) {
	for b.Loop() {
		_ = DSN(b)
	}
}
