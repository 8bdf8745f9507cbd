// Package stage lets an Example, which is given no testing.TB, use helpers that ask for one.
package stage

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
)

// New returns a TB for one example, which calls end when it is over: that ends the TB's context and runs its clean-ups. What fails panics, and so fails
// the example. The TB has the methods that helpers of this module call; others panic.
func New() (tb testing.TB, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &stage{ctx: ctx}
	return s, func() {
		cancel()
		for _, fn := range slices.Backward(s.cleanups) {
			fn()
		}
	}
}

type stage struct {
	testing.TB

	ctx      context.Context
	cleanups []func()
}

func (*stage) Helper()                           {}
func (s *stage) Context() context.Context        { return s.ctx }
func (s *stage) Cleanup(fn func())               { s.cleanups = append(s.cleanups, fn) }
func (*stage) Output() io.Writer                 { return io.Discard }
func (*stage) Name() string                      { return "Example" }
func (*stage) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*stage) FailNow()                          { panic("FailNow") }
func (*stage) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
