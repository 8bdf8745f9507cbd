package txtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/tx"
)

// Harness makes what [TestDriver] tests.
type Harness struct {
	// New returns a store that no other check uses: they run in parallel. It cleans up by t.Cleanup.
	New func(t *testing.T) Store
}

// Store is a driver and what is written through it: a set of keys.
type Store struct {
	Driver tx.Driver
	// Limit is how many transactions may be open at once; 0 means that there is no limit, and nothing to wait for. The driver's own bound on waiting
	// for one more is to be short.
	Limit int
	// Put adds a key in c. One that is there already is an error, after which the transaction cannot commit.
	Put func(ctx context.Context, c tx.Conn, key string) error
	// Has reports whether a key is there for everybody.
	Has func(ctx context.Context, key string) (bool, error)
	// Lose has the answer to the next COMMIT lost: where arrives is false, before it was carried out. It is nil where nothing can be lost.
	Lose func(arrives bool)
}

func (s Store) begin(ctx context.Context, o tx.BeginOptions) tx.Conn {
	c, err := s.Driver.Begin(ctx, o)
	suite.Must(err, "begin")
	return c
}

func (s Store) put(ctx context.Context, c tx.Conn, keys ...string) {
	for _, key := range keys {
		suite.Must(s.Put(ctx, c, key), "put "+key)
	}
}

// shows fails unless exactly those of the keys a, b, c and d are there.
func (s Store) shows(ctx context.Context, keys, what string) {
	var got strings.Builder
	for _, key := range []string{"a", "b", "c", "d"} {
		there, err := s.Has(ctx, key)
		suite.Must(err, "has "+key)
		if there {
			got.WriteString(key)
		}
	}
	suite.Equal(keys, got.String(), "keys there "+what)
}

// idle fails unless every connection has come back. Some drivers give a broken one back a little later.
func (s Store) idle(ctx context.Context, what string) {
	for deadline := time.Now().Add(10 * time.Second); ; {
		err := s.fill(ctx)
		if err == nil {
			return
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			suite.Fail("%s a connection did not come back: %v", what, err)
		}
	}
}

// fill has all connections out at once.
func (s Store) fill(ctx context.Context) error {
	var open []tx.Conn
	defer func() {
		for _, c := range open {
			suite.Must(c.Rollback(ctx), "rollback")
		}
	}()
	for range s.Limit {
		c, err := s.Driver.Begin(ctx, tx.BeginOptions{})
		if err != nil {
			return err
		}
		open = append(open, c)
	}
	return nil
}

func coded(err error, code fault.Code, what string) {
	if !errors.Is(err, code) {
		suite.Fail("%s: want %s, got %v", what, code, err)
	}
}
