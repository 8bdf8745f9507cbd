package outbox_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// store is a driver in memory, with hooks to make it fail, wait or lie. Its clock is the bubble's.
type store struct {
	mu      sync.Mutex
	events  map[outbox.Lane][]outbox.Event
	rows    map[outbox.Lane]*row
	missing map[outbox.Lane]int64 // the sequence that is not there
	open    map[outbox.Lane]bool  // an append is open: the lane is not removed
	locked  map[outbox.Lane]bool  // the row is locked by someone: claims skip it
	tokens  int

	claims, dues int // calls
	requests     []outbox.ClaimRequest
	settlements  [][]outbox.Settlement

	// Hooks run before a call takes effect, and outside of the lock; onRead and after run when a claim or a settlement has.
	onClaim, onRead, onSettle, onDue, after func(ctx context.Context) error
	answer                                  func() // when a claim has taken effect
}

type row struct {
	next           int64
	due            time.Time
	token          string
	attempt, looks int
	failure        string
}

func newStore() *store {
	return &store{
		events: map[outbox.Lane][]outbox.Event{}, rows: map[outbox.Lane]*row{}, missing: map[outbox.Lane]int64{},
		open: map[outbox.Lane]bool{}, locked: map[outbox.Lane]bool{},
	}
}

func lane(id string) outbox.Lane { return outbox.Lane{AggregateType: "order", AggregateID: id} }

// add commits n events of an aggregate.
func (s *store) add(id string, n int) outbox.Lane { return s.addDue(id, n, time.Now()) }

func (s *store) addDue(id string, n int, due time.Time) outbox.Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := lane(id)
	if s.rows[l] == nil {
		s.rows[l] = &row{next: int64(len(s.events[l])) + 1, due: due}
	}
	for range n {
		seq := int64(len(s.events[l])) + 1
		s.events[l] = append(s.events[l], outbox.Event{
			ID: fmt.Sprintf("%s-%d", id, seq), Type: "order.placed", AggregateType: l.AggregateType, AggregateID: id, Sequence: seq, RecordedAt: time.Now(),
		})
	}
	return l
}

func (s *store) Append(context.Context, *tx.Tx, []outbox.Event) error {
	panic("a relay appends nothing")
}

func hook(ctx context.Context, f func(context.Context) error) error {
	if f == nil {
		return nil
	}
	return f(ctx)
}

func (s *store) Claim(ctx context.Context, r outbox.ClaimRequest) ([]outbox.Claim, error) {
	s.mu.Lock()
	s.claims++
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	if err := hook(ctx, s.onClaim); err != nil {
		return nil, err
	}
	claims := s.lease(r)
	if s.answer != nil {
		s.answer()
	}
	return claims, hook(ctx, s.onRead)
}

func (s *store) lease(r outbox.ClaimRequest) []outbox.Claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var chosen []outbox.Lane
	rung := r.Rung[:min(len(r.Rung), (r.Limit+1)/2)]
	for _, l := range rung {
		if row := s.rows[l]; row != nil && row.token == "" && row.attempt == 0 && !s.locked[l] {
			chosen = append(chosen, l)
		}
	}
	var due []outbox.Lane
	for l, row := range s.rows {
		if !row.due.After(now) && !row.due.Before(r.Floor) && !s.locked[l] && !slices.Contains(chosen, l) {
			due = append(due, l)
		}
	}
	slices.SortFunc(due, func(a, b outbox.Lane) int {
		return cmp.Or(s.rows[a].due.Compare(s.rows[b].due), cmp.Compare(a.AggregateID, b.AggregateID))
	})
	chosen = append(chosen, due[:min(len(due), r.Limit-len(rung))]...)
	var claims []outbox.Claim
	for _, l := range chosen {
		claims = append(claims, s.claim(l, r, now))
	}
	return claims
}

func (s *store) claim(l outbox.Lane, r outbox.ClaimRequest, now time.Time) outbox.Claim {
	row := s.rows[l]
	s.tokens++
	c := outbox.Claim{Lane: l, Owner: r.Owner, Token: fmt.Sprint(s.tokens), Next: row.next, Due: row.due}
	row.attempt++
	row.token, row.due = c.Token, now.Add(r.Lease)
	c.Attempt = row.attempt
	for _, e := range s.events[l][row.next-1:] {
		if c.Gap = e.Sequence == s.missing[l]; c.Gap || len(c.Run) == r.RunSize {
			break
		}
		c.Run = append(c.Run, e)
	}
	c.More = len(c.Run) == r.RunSize
	return c
}

func (s *store) Settle(ctx context.Context, all []outbox.Settlement) (lost []outbox.Lane, err error) {
	if err := hook(ctx, s.onSettle); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.settlements = append(s.settlements, all)
	for _, x := range all {
		if row := s.rows[x.Claim.Lane]; row == nil || row.token != x.Claim.Token || row.next != x.Claim.Next {
			lost = append(lost, x.Claim.Lane)
		} else {
			s.settle(row, x)
		}
	}
	s.mu.Unlock()
	return lost, hook(ctx, s.after)
}

func (s *store) settle(r *row, x outbox.Settlement) {
	now, l := time.Now(), x.Claim.Lane
	r.token, r.failure, r.due = "", x.Failure, now
	r.next += int64(x.Acked)
	switch {
	case x.Failure != "":
		r.due = now.Add(x.Retry)
		if x.Acked > 0 {
			r.attempt = 1
		}
	case x.GiveBack:
		r.attempt--
	case x.Acked > 0:
		r.attempt, r.looks = 0, 0
	default:
		r.attempt--
	}
	if x.Failure != "" || r.next <= int64(len(s.events[l])) {
		return
	}
	if s.open[l] {
		r.looks++
		r.due = now.Add(min(100*time.Millisecond, time.Millisecond<<min(r.looks, 10)))
		return
	}
	delete(s.rows, l)
}

func (s *store) Renew(context.Context, []outbox.Claim, time.Duration) ([]outbox.Lane, error) {
	panic("a relay renews nothing")
}

func (s *store) NextDue(ctx context.Context) (time.Duration, time.Time, bool, error) {
	s.mu.Lock()
	s.dues++
	s.mu.Unlock()
	if err := hook(ctx, s.onDue); err != nil {
		return 0, time.Time{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var first time.Time
	for _, r := range s.rows {
		if first.IsZero() || r.due.Before(first) {
			first = r.due
		}
	}
	return time.Until(first), first, !first.IsZero(), nil
}

// flat returns what was settled, in order.
func (s *store) flat() []outbox.Settlement { return slices.Concat(s.batches()...) }

// left is how many lanes have something to deliver.
func (s *store) left() int { return locked(s, func() int { return len(s.rows) }) }

func (s *store) claimed() int { return locked(s, func() int { return s.claims }) }

func (s *store) asked() int { return locked(s, func() int { return s.dues }) }

func (s *store) calls() int {
	return locked(s, func() int { return s.claims + s.dues + len(s.settlements) })
}

func (s *store) asks() []outbox.ClaimRequest {
	return locked(s, func() []outbox.ClaimRequest { return slices.Clone(s.requests) })
}

func (s *store) batches() [][]outbox.Settlement {
	return locked(s, func() [][]outbox.Settlement { return slices.Clone(s.settlements) })
}

func (s *store) row(l outbox.Lane) row { return locked(s, func() row { return *s.rows[l] }) }

func locked[T any](s *store, f func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}
