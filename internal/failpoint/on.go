//go:build failpoints

package failpoint

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Variable is where a process finds the point that it dies at.
const Variable = "FAILPOINT"

var (
	armed, left = parse(os.Getenv(Variable))
	hits        atomic.Int64
)

// parse panics on what names no point: a test that meant one would pass without a crash.
func parse(v string) (Point, int64) {
	if v == "" {
		return "", 0
	}
	name, count, _ := strings.Cut(v, ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if p := Point(name); err == nil && n > 0 && slices.Contains(Points(), p) {
		return p, n
	}
	panic(Variable + " is not <point>:<n>, n from 1: " + v)
}

// Hit kills the process if it is told to die here, and this time.
func Hit(p Point) {
	if p == armed && hits.Add(1) == left {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}
