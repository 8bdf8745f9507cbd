// Package suite runs the conformance suites of the ports. Its checks can be run without a *testing.T, so that a suite is tested with
// implementations that must fail.
package suite

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"
)

// bound is how long a check may take: one that waits for ever has failed.
const bound = time.Minute

// Check is one promise of a port. Run fails by [Fail], or what calls it, in its own goroutine.
type Check[S any] struct {
	Name string
	Run  func(ctx context.Context, s S)
}

// Err returns why s does not keep the promise, nil if it does.
func (c Check[S]) Err(ctx context.Context, s S) (err error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failure:
			err = v.err
		default:
			panic(v)
		}
	}()
	c.Run(ctx, s)
	return nil
}

// Test runs each check in a parallel subtest of its name, with an S of its own.
func Test[S any](t *testing.T, checks []Check[S], newS func(t *testing.T) S) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if err := c.Err(t.Context(), newS(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// failure travels from Fail to Err.
type failure struct{ err error }

// Fail ends the check.
func Fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// Must fails unless err is nil.
func Must(err error, what string) {
	if err != nil {
		panic(failure{fmt.Errorf("%s: %w", what, err)})
	}
}

// Equal fails unless got is deeply equal to want.
func Equal[T any](want, got T, what string) {
	if !reflect.DeepEqual(want, got) {
		Fail("%s: want %v, got %v", what, want, got)
	}
}
