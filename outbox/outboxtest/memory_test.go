package outboxtest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
	"caskeleton.dev/outbox/outboxtest"
	"caskeleton.dev/tx"
)

// memory is a driver of the outbox and of transactions: the smallest that keeps the promises, but for one bug at a time.
type memory struct {
	bug     string
	mu      sync.Mutex
	events  map[outbox.Lane][]outbox.Event
	lanes   map[outbox.Lane]*row
	ids     map[string]bool
	writers map[outbox.Lane]chan struct{} // each holds a token while an append is open
	tokens  int
}

type row struct {
	next         int64
	due          time.Time
	owner, token string
	attempt      int
	beyond       int64 // the bug "overtakes the head": the first sequence behind the run in flight
}

const epoch = 1

func newMemory(bug string) *memory {
	return &memory{
		bug: bug, events: map[outbox.Lane][]outbox.Event{}, lanes: map[outbox.Lane]*row{}, ids: map[string]bool{}, writers: map[outbox.Lane]chan struct{}{},
	}
}

// newStore returns a memory with the bug, "" for none.
func newStore(t *testing.T, bug string) outboxtest.Store {
	t.Helper()
	m := newMemory(bug)
	runner, err := tx.NewRunner(m, nil)
	require.NoError(t, err)
	return outboxtest.Store{Driver: m, Runner: runner, Expire: func(context.Context) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, r := range m.lanes {
			r.due = time.Now().Add(-time.Second)
		}
		return nil
	}}
}

// session is one transaction.
type session struct {
	*memory
	appended []outbox.Event
	locked   map[outbox.Lane]bool
	had      map[outbox.Lane]bool // the bug "loses an open append"
	failed   error
}

func (m *memory) Begin(context.Context, tx.BeginOptions) (tx.Conn, error) {
	return &session{memory: m, locked: map[outbox.Lane]bool{}, had: map[outbox.Lane]bool{}}, nil
}
func (*session) Savepoint(context.Context, string, bool) error { return nil }
func (*session) Release(context.Context, string) error         { return nil }
func (*session) RollbackTo(context.Context, string) error      { return nil }

func (s *session) Commit(context.Context) error {
	defer s.unlock()
	if s.failed != nil {
		return s.failed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.appended {
		s.add(e, s.had[e.Lane()])
	}
	return nil
}

func (s *session) Rollback(context.Context) error {
	if s.bug == "delivers what was rolled back" {
		return s.Commit(context.Background())
	}
	s.unlock()
	return nil
}

func (s *session) unlock() {
	for l := range s.locked {
		<-s.writers[l]
	}
}

// add makes e visible, and its lane unless noLane.
func (m *memory) add(e outbox.Event, noLane bool) {
	l := e.Lane()
	e.Sequence, e.RecordedAt = int64(len(m.events[l]))+1, time.Now()
	if m.bug == "skips a sequence" {
		e.Sequence++
	}
	if e.OccurredAt.IsZero() {
		e.OccurredAt = e.RecordedAt
	}
	if m.bug == "drops headers" {
		e.Headers = nil
	}
	if m.bug == "puts new events first" {
		m.events[l] = slices.Insert(m.events[l], 0, e)
	} else {
		m.events[l] = append(m.events[l], e)
	}
	m.ids[e.ID] = true
	if m.lanes[l] == nil && !noLane {
		m.lanes[l] = &row{next: int64(len(m.events[l])), due: time.Now()}
	}
}

func (m *memory) Append(ctx context.Context, t *tx.Tx, events []outbox.Event) error {
	conn, err := tx.Unwrap(t)
	if err != nil {
		return err
	}
	s, ok := conn.(*session)
	if !ok {
		return errors.New("not a transaction of this driver")
	}
	lanes := []outbox.Lane{}
	for _, e := range events {
		lanes = append(lanes, e.Lane())
	}
	if m.bug != "locks in the order of the call" {
		slices.SortFunc(lanes, func(a, b outbox.Lane) int { return cmp.Compare(a.AggregateID, b.AggregateID) })
	}
	for _, l := range lanes {
		if err := s.lock(ctx, l); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		if m.ids[e.ID] && m.bug != "accepts a duplicate id" {
			err := fault.New(fault.OutboxEventDuplicate, "memory.Append", nil)
			if m.bug != "commits after a duplicate id" {
				s.failed = err
			}
			return err
		}
		if m.bug == "loses an open append" && m.lanes[e.Lane()] != nil {
			s.had[e.Lane()] = true
		}
		if m.bug == "delivers before commit" {
			m.add(e, false)
		} else {
			s.appended = append(s.appended, e)
		}
	}
	return nil
}

// lock waits for other appends of the aggregate.
func (s *session) lock(ctx context.Context, l outbox.Lane) error {
	if s.locked[l] {
		return nil
	}
	s.mu.Lock()
	w := s.writers[l]
	if w == nil {
		w = make(chan struct{}, 1)
		s.writers[l] = w
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	select {
	case w <- struct{}{}:
		s.locked[l] = true
		if s.bug == "locks in the order of the call" { // and is slow about it
			<-time.After(10 * time.Millisecond)
		}
		return nil
	case <-ctx.Done():
		return fault.New(fault.DBDeadlock, "memory.Append", ctx.Err())
	}
}

func (m *memory) Claim(_ context.Context, q outbox.ClaimRequest) ([]outbox.Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	most := (q.Limit + 1) / 2
	if m.bug == "bells take the whole limit" {
		most = q.Limit
	}
	wanted := q.Rung[:min(len(q.Rung), most)]
	if m.bug == "hears no bell" {
		wanted = nil
	}
	var chosen []outbox.Lane
	for _, l := range wanted {
		if r := m.lanes[l]; r != nil && r.owner == "" && (r.attempt == 0 || m.bug == "a bell ends a back-off") {
			chosen = append(chosen, l)
		}
	}
	var due []outbox.Lane
	for l, r := range m.lanes {
		switch {
		case slices.Contains(chosen, l):
		case m.bug == "claims a leased lane" && r.owner != "", m.bug == "overtakes the head" && r.beyond > 0 && r.beyond <= int64(len(m.events[l])):
			due = append(due, l)
		case r.due.After(now), r.due.Before(q.Floor) && m.bug != "ignores the floor":
		case r.owner != "" && m.bug == "never takes over":
		default:
			due = append(due, l)
		}
	}
	slices.SortFunc(due, func(a, b outbox.Lane) int { return m.lanes[a].due.Compare(m.lanes[b].due) })
	if m.bug != "ignores the limit" {
		due = due[:min(len(due), q.Limit-len(wanted))]
	}
	var claims []outbox.Claim
	for _, l := range append(chosen, due...) {
		claims = append(claims, m.lease(l, q, now))
	}
	return claims, nil
}

func (m *memory) lease(l outbox.Lane, q outbox.ClaimRequest, now time.Time) outbox.Claim {
	r := m.lanes[l]
	m.tokens++
	if m.bug == "one token a lane" {
		m.tokens = len(l.AggregateID)
	}
	c := outbox.Claim{Lane: l, Owner: q.Owner, Token: fmt.Sprint(m.tokens), Epoch: epoch, Next: r.next, Due: r.due}
	if m.bug == "overtakes the head" && r.beyond > 0 && r.due.After(now) {
		c.Next = r.beyond
	}
	r.attempt++
	if m.bug == "counts no attempt" {
		r.attempt = 1
	}
	r.owner, r.token, r.due, c.Attempt = c.Owner, c.Token, now.Add(q.Lease), r.attempt
	rest := m.events[l][c.Next-1:]
	if m.bug != "ignores the run size" {
		rest = rest[:min(len(rest), q.RunSize)]
	}
	c.Run = slices.Clone(rest)
	r.beyond = c.Next + int64(len(c.Run))
	c.More = r.beyond <= int64(len(m.events[l])) && m.bug != "says no More"
	return c
}

// held says whether the claim is the lane's.
func (m *memory) held(c outbox.Claim) bool {
	r := m.lanes[c.Lane]
	return r != nil && r.owner != "" && (r.owner == c.Owner || m.bug == "no owner predicate") && (r.token == c.Token || m.bug == "no token predicate") &&
		(r.next == c.Next || m.bug == "no next predicate") && (c.Epoch == epoch || m.bug == "no epoch predicate")
}

func (m *memory) Settle(_ context.Context, all []outbox.Settlement) (lost []outbox.Lane, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range all {
		if !m.held(s.Claim) && (m.bug != "settles for anyone" || m.lanes[s.Claim.Lane] == nil) {
			lost = append(lost, s.Claim.Lane)
			continue
		}
		m.settle(m.lanes[s.Claim.Lane], s)
	}
	if m.bug == "reports no loss" {
		lost = nil
	}
	return lost, nil
}

func (m *memory) settle(r *row, s outbox.Settlement) {
	l := s.Claim.Lane
	r.next = s.Claim.Next + int64(s.Acked)
	r.owner, r.token, r.due = "", "", time.Now()
	switch {
	case s.Failure != "":
		if m.bug != "retries at once" {
			r.due = r.due.Add(s.Retry)
		}
		if s.Acked > 0 {
			r.attempt = 1
		}
	case s.GiveBack && m.bug == "giving back counts", s.Acked > 0 && m.bug == "resets no attempt":
	case s.Acked > 0:
		r.attempt = 0
	case m.bug != "looking in vain counts":
		r.attempt--
	}
	drained := r.next > int64(len(m.events[l]))
	switch {
	case !drained, s.Failure != "", m.bug == "keeps drained lanes":
	case len(m.writers[l]) > 0 && m.bug != "loses an open append": // looked at again, though the commit would make it anew
	default:
		delete(m.lanes, l)
	}
}

func (m *memory) Renew(_ context.Context, claims []outbox.Claim, lease time.Duration) (lost []outbox.Lane, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range claims {
		switch {
		case m.bug == "renews nothing":
		case m.held(c), m.bug == "renews for anyone" && m.lanes[c.Lane] != nil:
			m.lanes[c.Lane].due = time.Now().Add(lease)
		default:
			lost = append(lost, c.Lane)
		}
	}
	return lost, nil
}

func (m *memory) NextDue(context.Context) (in time.Duration, at time.Time, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.lanes {
		if !ok || r.due.Before(at) != (m.bug == "tells the last due time") {
			at, ok = r.due, true
		}
	}
	return time.Until(at), at, ok, nil
}
