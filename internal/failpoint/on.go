//go:build failpoints

package failpoint

import (
	"os"
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

func parse(v string) (Point, int64) {
	name, count, ok := strings.Cut(v, ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if !ok || err != nil || n < 1 {
		return "", 0
	}
	return Point(name), n
}

// Hit kills the process if it is told to die here, and this time.
func Hit(p Point) {
	if p == armed && hits.Add(1) == left {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}
