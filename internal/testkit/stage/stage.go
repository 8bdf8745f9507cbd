// Package stage lets an Example, which is given no testing.TB, use helpers that ask for one.
package stage

import (
	"context"
	"fmt"
	"io"
	"testing"
)

// Play runs fn with a TB whose context ends, and whose clean-ups run, when fn is over. What fails panics, and so fails the example. It has the
// methods that helpers of this module call; others panic.
func Play(fn func(tb testing.TB)) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &stage{ctx: ctx}
	defer func() {
		cancel()
		for i := len(s.cleanups) - 1; i >= 0; i-- {
			s.cleanups[i]()
		}
	}()
	fn(s)
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
