package outboxtest

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// Store is an outbox under test, empty at first.
type Store struct {
	Driver outbox.Driver
	Runner *tx.Runner // begins the transactions that Driver appends in; at least 8 at a time
	// Expire makes all lanes due now, whatever lease or back-off they have. Who held one is not told.
	Expire func(ctx context.Context) error
}

// errRollback ends a transaction of a check without a commit.
var errRollback = errors.New("outboxtest: rolled back on purpose")

func lane(id string) outbox.Lane { return outbox.Lane{AggregateType: "order", AggregateID: id} }

// event happened to the aggregate id; n tells its events apart, and makes its id.
func event(id string, n int) outbox.Event {
	return outbox.Event{
		ID: fmt.Sprintf("%08x-0000-4000-8000-%012x", crc32.ChecksumIEEE([]byte(id)), n), Type: "order.changed", SchemaVersion: 1, AggregateType: "order", AggregateID: id,
		Payload: []byte(text(id, n)), ContentType: "text/plain",
	}
}

// text is the payload of the event.
func text(id string, n int) string { return fmt.Sprintf("%s%d", id, n) }

func texts(id string, from, to int) []string {
	var all []string
	for n := from; n <= to; n++ {
		all = append(all, text(id, n))
	}
	return all
}

func events(id string, from, to int) []outbox.Event {
	var all []outbox.Event
	for n := from; n <= to; n++ {
		all = append(all, event(id, n))
	}
	return all
}

// append records events in a transaction that ends with result.
func (s Store) append(ctx context.Context, result error, events ...outbox.Event) error {
	return s.Runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := s.Driver.Append(ctx, t, events); err != nil {
			return err
		}
		return result
	})
}

func (s Store) commit(ctx context.Context, events ...outbox.Event) {
	suite.Must(s.append(ctx, nil, events...), "append and commit")
}

// open runs during while a transaction that appended events is open, which then ends with result.
func (s Store) open(ctx context.Context, result error, during func(), events ...outbox.Event) {
	err := s.Runner.InWrite(ctx, func(txCtx context.Context, t *tx.Tx) error {
		suite.Must(s.Driver.Append(txCtx, t, events), "append")
		during()
		return result
	})
	if !errors.Is(err, result) {
		suite.Fail("the transaction ended with %v, not %v", err, result)
	}
}

// request claims up to ten lanes of up to ten events, for an hour.
func request(owner string, rung ...outbox.Lane) outbox.ClaimRequest {
	return outbox.ClaimRequest{Owner: owner, Limit: 10, RunSize: 10, Lease: time.Hour, Rung: rung}
}

func (s Store) claim(ctx context.Context, r outbox.ClaimRequest) []outbox.Claim {
	claims, err := s.Driver.Claim(ctx, r)
	suite.Must(err, "claim")
	return claims
}

// one claims, and fails unless that gives the lane of the aggregate id alone.
func (s Store) one(ctx context.Context, id string) outbox.Claim {
	claims := s.claim(ctx, request("relay"))
	suite.Equal([]string{id}, aggregates(claims), "aggregates claimed")
	return claims[0]
}

// nothing fails if a lane can be claimed.
func (s Store) nothing(ctx context.Context, why string) {
	suite.Equal(nil, aggregates(s.claim(ctx, request("other"))), why+": aggregates claimed")
}

// settle fails if a claim was lost.
func (s Store) settle(ctx context.Context, all ...outbox.Settlement) {
	lost, err := s.Driver.Settle(ctx, all)
	suite.Must(err, "settle")
	suite.Equal(0, len(lost), "claims lost although they are held")
}

func (s Store) expire(ctx context.Context) { suite.Must(s.Expire(ctx), "Expire") }

// due returns the smallest due time, and how far off it is; ok as wanted.
func (s Store) due(ctx context.Context, ok bool) (time.Duration, time.Time) {
	in, at, found, err := s.Driver.NextDue(ctx)
	suite.Must(err, "NextDue")
	suite.Equal(ok, found, "NextDue finds a lane")
	return in, at
}

// done acknowledges all of a run.
func done(c outbox.Claim) outbox.Settlement { return outbox.Settlement{Claim: c, Acked: len(c.Run)} }

func aggregates(claims []outbox.Claim) []string {
	var ids []string
	for _, c := range claims {
		ids = append(ids, c.AggregateID)
	}
	return ids
}

func payloads(run []outbox.Event) []string {
	var all []string
	for _, e := range run {
		all = append(all, string(e.Payload))
	}
	return all
}
