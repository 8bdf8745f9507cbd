//go:build e2e

package postgres_test

import "testing"

func TestAThousandCuts(t *testing.T) { cuts(t, 1000) }
