package locktest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"caskeleton.dev/internal/testkit/history"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/lock"
)

// clockTolerance is how much earlier than asked for a store may end a lease: it rounds, and its clock may be a little fast.
const clockTolerance = 5 * time.Millisecond

// TestHistory plays what o says and fails unless the recorded calls can have come from a lock: each took effect at one moment between its request
// and its answer, one token held the key at a time, for no less than its lease. A call that failed may have taken effect at any time since, or
// never. Not being able to tell is a failure too.
func TestHistory(t *testing.T, h Harness, o *HistoryOptions) {
	t.Helper()
	if o == nil {
		o = &HistoryOptions{}
	}
	suite.Test(t, []suite.Check[Store]{{Name: "history", Run: func(ctx context.Context, s Store) { play(ctx, s, *o) }}}, h.New)
}

// kind is what a call did, or what happened.
type kind string

const (
	acquire kind = "acquire"
	look    kind = "look"
	renew   kind = "renew"
	release kind = "release"
	expire  kind = "expire" // the lease of whoever holds the key was made to pass
	pass    kind = "pass"   // the lease of the token passed
	believe kind = "believe"
)

// event is one call, or what is concluded from calls.
type event struct {
	kind   kind
	key    string
	token  lock.Token
	lease  time.Duration
	call   time.Duration // since the history began
	ret    time.Duration
	failed bool // it may have taken effect, at any time
	got    bool // acquire and renew: as asked; look: held
	freed  lock.Freed
}

// state is what a key is like.
type state struct {
	token  lock.Token // the zero one where nobody has it
	passed bool       // its lease has
}

// step returns what may be the state after e, nothing where e cannot have happened.
func (s state) step(e event) []state {
	holds := s.token == e.token && !s.passed
	free := s.token == lock.Token{} || s.passed
	switch e.kind {
	case acquire:
		switch {
		case e.failed && free:
			return []state{s, {token: e.token}}
		case e.failed || !e.got && !free:
			return []state{s}
		case e.got && free:
			return []state{{token: e.token}}
		}
	case look:
		if e.got != free {
			return []state{s}
		}
	case renew:
		if e.got == holds {
			return []state{s}
		}
	case release:
		switch mine := s.token == e.token; {
		case e.failed && mine:
			return []state{s, {}}
		case e.failed, e.freed == lock.Lost && !mine:
			return []state{s}
		case mine && e.freed == lock.Released && !s.passed, mine && e.freed != lock.Released && s.passed:
			return []state{{}}
		}
	case expire:
		after := state{s.token, s.token != lock.Token{}}
		if e.failed {
			return []state{s, after}
		}
		return []state{after}
	case pass:
		if s.token == e.token {
			return []state{{s.token, true}}
		}
		return []state{s}
	case believe:
		if holds {
			return []state{s}
		}
	}
	return nil
}

// passes adds when leases may have passed by themselves, for tokens that were told so, or whose end nobody knows.
func passes(events []event) []event {
	byToken := map[lock.Token][]event{}
	for _, e := range events {
		byToken[e.token] = append(byToken[e.token], e)
	}
	for _, calls := range byToken {
		slices.SortFunc(calls, func(a, b event) int { return cmp.Compare(a.call, b.call) })
		from, until, known := history.Never, history.Never, false
		for _, e := range calls {
			end := e.call + e.lease - clockTolerance
			switch {
			case e.kind == acquire && (e.got || e.failed), e.kind == renew && e.got:
				from = end
			case e.kind == renew && e.failed: // it ends at the old time or the new one
				from = min(from, end)
			case e.kind == renew, e.kind == release && !e.failed && e.freed != lock.Released:
				until = min(until, e.ret)
			case e.kind == release && !e.failed:
				known = true // to have held to the end
			}
		}
		if !known && from < until {
			events = append(events, event{kind: pass, key: calls[0].key, token: calls[0].token, call: from, ret: until})
		}
	}
	return events
}

// judge fails unless the events of each key can have come from a lock.
func judge(events []event) {
	m := history.Model[state, event]{Name: "a lock", Step: state.step, Span: event.span, Transcript: transcript}
	byKey := map[string][]event{}
	for _, e := range passes(events) {
		if e.failed && (e.kind == look || e.kind == renew) { // they change nobody's holding
			continue
		}
		byKey[e.key] = append(byKey[e.key], e)
	}
	for name, events := range byKey {
		m.Judge(strconv.Quote(name), events)
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
	for _, e := range events {
		answer := fmt.Sprint(e.got)
		switch {
		case e.failed:
			answer = "failed"
		case e.kind == release:
			answer = word(e.freed)
		case e.kind == expire, e.kind == pass:
			answer = ""
		}
		fmt.Fprintf(&b, "%12v %12v %-8s %x %v %s\n", e.call, e.ret, e.kind, e.token[:3], e.lease, answer)
	}
	return b.String()
}
