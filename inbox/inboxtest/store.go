package inboxtest

import (
	"context"
	"errors"

	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/tx"
)

// Store keeps the messages under test, none at first.
type Store struct {
	Driver inbox.Driver
	Runner *tx.Runner // begins the transactions that Driver claims in; at least 3 at a time
}

// errRollback ends a transaction of a check without a commit.
var errRollback = errors.New("inboxtest: rolled back on purpose")

const consumer = "shipping"

// claim runs during, unless it is nil, in the transaction of a claim, which then ends with result.
func (s Store) claim(ctx context.Context, who, id string, result error, during func()) (inbox.Verdict, error) {
	var verdict inbox.Verdict
	err := s.Runner.InRootWrite(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		if verdict, err = s.Driver.Claim(ctx, t, who, id); err != nil {
			return err
		}
		if during != nil {
			during()
		}
		return result
	})
	if result != nil && errors.Is(err, result) {
		err = nil
	}
	return verdict, err
}

// finds claims in a transaction that ends with result, and fails unless the verdict is want.
func (s Store) finds(ctx context.Context, want inbox.Verdict, id string, result error, what string) {
	got, err := s.claim(ctx, consumer, id, result, nil)
	suite.Must(err, "claim of "+what)
	equal(want, got, "claim of "+what)
}

// attempt fails unless the count is want.
func (s Store) attempt(ctx context.Context, want int, id, what string) {
	n, err := s.Driver.Attempt(ctx, consumer, id)
	suite.Must(err, "attempt of "+what)
	suite.Equal(want, n, "attempts of "+what)
}

// park fails unless the verdict is want; 0 stands for a message that is now parked.
func (s Store) park(ctx context.Context, want inbox.Verdict, id, what string) {
	got, err := s.Driver.Park(ctx, consumer, message(id), 3, "it was refused")
	suite.Must(err, "parking "+what)
	if got != inbox.Done && got != inbox.Settling {
		got = 0
	}
	equal(want, got, "parking "+what)
}

func message(id string) inbox.Message {
	return inbox.Message{
		ID: id, Type: "order.placed", AggregateType: "order", AggregateID: "ä/1", Sequence: 7, Payload: []byte{0, 0xff}, ContentType: "application/octet-stream",
		Headers: map[string]string{"ü": ""},
	}
}

// busy says whether a driver gave up waiting for another transaction.
func busy(err error) bool { return errors.Is(err, fault.DBLockTimeout) }

func equal(want, got inbox.Verdict, what string) { suite.Equal(word(want), word(got), what) }

func word(v inbox.Verdict) string {
	return map[inbox.Verdict]string{0: "none", inbox.Fresh: "Fresh", inbox.Retried: "Retried", inbox.Done: "Done", inbox.Settling: "Settling"}[v]
}
