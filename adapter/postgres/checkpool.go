package postgres

import (
	"fmt"
	"math"
)

// CheckPool returns a [*ConfigError] if a pool of maxConns is too small for that many workers at once, each with transactions nested to
// that depth: all of them could then wait for a connection that none gives back. Depth is 1 for a transaction without InNew in it, 2 with
// InNew, 3 with InNew inside that. With workers x (depth - 1) + 1 connections, one of them can always go on. A maxConns of 0 is the default
// of [Config].
func CheckPool(maxConns int32, workers, depth int) error {
	if min(workers, depth) < 1 || max(workers, depth) > math.MaxInt32 {
		return fmt.Errorf("postgres: CheckPool was given %d workers and depth %d; both are 1 or more, and less than the connections of any server", workers, depth)
	}
	if maxConns == 0 {
		maxConns = Config{}.withDefaults().MaxConns
	}
	need := int64(workers)*int64(depth-1) + 1
	if int64(maxConns) >= need {
		return nil
	}
	return &ConfigError{[]Problem{{
		Field: "MaxConns", Value: fmt.Sprint(maxConns),
		Problem: fmt.Sprintf("is less than workers x (depth - 1) + 1 = %d x (%d - 1) + 1 = %d, so that transactions inside transactions could wait for each other's connections", workers, depth, need),
		Fix:     fmt.Sprintf("raise it to %d, or run fewer workers", need),
	}}}
}
