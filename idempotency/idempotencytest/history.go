package idempotencytest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/testkit/history"
	"caskeleton.dev/internal/testkit/suite"
)

// TestHistory plays what o says and fails unless the recorded calls can have come from a store of records: each took effect at one moment
// between its request and its answer. A call that failed may have taken effect at any time since, or never. Not being able to tell is a
// failure too.
func TestHistory(t *testing.T, h Harness, o *HistoryOptions) {
	t.Helper()
	if o == nil {
		o = &HistoryOptions{}
	}
	suite.Test(t, []suite.Check[Store]{{Name: "history", Run: func(ctx context.Context, s Store) { play(ctx, s, *o) }}}, h.New)
}

// event is one call. What happens to many records is one of each.
type event struct {
	what   string
	scope  idempotency.Scope
	claim  idempotency.Claim // by whom
	after  idempotency.Claim // claim, take over, execute: whose it is then
	from   idempotency.State
	to     idempotency.State
	late   bool // read: the lease has expired
	answer string
	call   time.Duration // since the history began
	ret    time.Duration
	failed bool // it may have taken effect, at any time
	told   bool // that it did what it was to do
}

// status is what a record is like; the zero one is of none.
type status struct {
	state  idempotency.State
	claim  idempotency.Claim
	answer string
	late   bool              // the lease has passed
	old    bool              // the expiry has
	locked idempotency.Claim // by a transaction of this claim
}

// step returns what may be the status after e, nothing where e cannot have happened.
func (s status) step(e event) []status {
	mine := s.state == e.from && s.claim == e.claim
	next := s
	switch e.what {
	case "claim": // made
		if s.state != "" && !e.failed {
			return nil
		}
		next = status{state: idempotency.Claimed, claim: e.after}
		return e.either(s.state == "", s, next)
	case "read":
		ok := s.state == e.to
		if e.to != "" {
			ok = ok && s.claim == e.after && s.answer == e.answer && s.late == e.late
		}
		return when(ok, s)
	case "take over":
		if !e.told && !e.failed {
			return []status{s} // its holder was alive, or it was another's
		}
		next.claim, next.late, next.old = e.after, false, false
		return e.either(mine && s.late && s.locked == (idempotency.Claim{}), s, next)
	case "start":
		if !e.told {
			return when(!mine, s)
		}
		next.locked = e.claim
		return when(mine, next)
	case "commit", "rollback":
		next.locked = idempotency.Claim{}
		if e.what == "commit" {
			next.state, next.answer, next.old = idempotency.Completed, e.answer, false
			next.claim.Revision++
			if e.failed {
				unlocked := s
				unlocked.locked = idempotency.Claim{}
				return when(mine && s.locked == e.claim, next, unlocked)
			}
		}
		return when(mine && s.locked == e.claim, next)
	case "execute":
		next.state, next.claim, next.late = idempotency.Executing, e.after, false
	case "renew":
		next.late = false
	case "settle":
		next.state, next.answer = e.to, e.answer
		next.claim.Revision++
		switch e.to {
		case "":
			next = status{}
		case idempotency.Completed, idempotency.Failed:
			next.old = false
		}
	case "abandon", "expire":
		if e.what == "expire" {
			mine = s.state == idempotency.Executing
		} else if !e.told && !e.failed {
			return when(!mine || !s.late, s)
		}
		next.state = idempotency.Abandoned
		next.claim.Revision++
		if e.what == "expire" && mine && s.late {
			return []status{s, next} // it may have been looked at before, or skipped
		}
		if e.what == "expire" {
			return []status{s}
		}
		return e.either(mine && s.late, s, next)
	case "reap":
		ended := s.state == idempotency.Completed || s.state == idempotency.Failed || s.state == idempotency.Claimed && s.late
		if ended && s.old && s.locked == (idempotency.Claim{}) {
			return []status{s, {}}
		}
		return []status{s}
	case "pass":
		next.late, next.old = s.state != "", s.state != ""
		return e.either(true, s, next)
	}
	if !e.told && !e.failed {
		return when(!mine, s)
	}
	return e.either(mine, s, next)
}

// either is what a call leaves that was told, or may, have moved s to next, if it can.
func (e event) either(can bool, s, next status) []status {
	switch {
	case e.failed && can:
		return []status{s, next}
	case e.failed:
		return []status{s}
	}
	return when(can, next)
}

func when(ok bool, s ...status) []status {
	if ok {
		return s
	}
	return nil
}

// judge fails unless the events of each scope can have come from a store of records.
func judge(events []event) {
	m := history.Model[status, event]{Name: "a store of records", Step: status.step, Span: event.span, Transcript: transcript}
	byScope := map[idempotency.Scope][]event{}
	for _, e := range events {
		byScope[e.scope] = append(byScope[e.scope], e)
	}
	for scope, events := range byScope {
		m.Judge(scope.String(), events)
	}
}

func (e event) span() (call, ret time.Duration) {
	if e.failed {
		return e.call, history.Never
	}
	return e.call, e.ret
}

func transcript(events []event) string {
	var b strings.Builder
	short := func(c idempotency.Claim) string {
		return fmt.Sprintf("%d/%d/%s", c.Attempt, c.Revision, c.Operation[:min(4, len(c.Operation))])
	}
	for _, e := range events {
		fmt.Fprintf(&b, "%12v %12v %-9s %s -> %s, %s -> %s, late %v, answer %q, told %v, failed %v\n",
			e.call, e.ret, e.what, short(e.claim), short(e.after), e.from, e.to, e.late, e.answer, e.told, e.failed)
	}
	return b.String()
}
