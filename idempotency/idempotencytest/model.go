package idempotencytest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/tx"
)

// TestModel makes random sequences of calls, with claims that are held, lost and stale, and compares each answer, and what is stored after
// each call, with those of a model.
func TestModel(t *testing.T, h Harness) {
	t.Helper()
	s := h.New(t)
	rapid.Check(t, func(rt *rapid.T) {
		check := suite.Check[Store]{Name: "model", Run: func(ctx context.Context, s Store) {
			walk(ctx, s, func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, what) })
		}}
		if err := check.Err(rt.Context(), s); err != nil {
			rt.Fatal(err)
		}
	})
}

// draw chooses one of n.
type draw func(what string, n int) int

// key is what the model knows of one.
type key struct {
	scope   idempotency.Scope
	claims  []idempotency.Claim // all that anybody ever held
	there   bool
	claim   idempotency.Claim
	state   idempotency.State
	answer  []byte
	created time.Duration
	lease   time.Duration // when it passes
	expiry  time.Duration
}

type model struct {
	Store

	draw draw
	now  time.Duration // what has passed
	keys []*key
}

const steps = 30

// walk makes one sequence.
func walk(ctx context.Context, s Store, d draw) {
	m := &model{Store: s, draw: d, keys: []*key{{scope: newScope()}, {scope: newScope()}}}
	all := []func(context.Context, *key){
		m.claimIt, m.claimIt, m.takeOver, m.complete, m.complete, m.execute, m.renew, m.settle, m.settle, m.abandon, m.letPass, m.letPass, m.expire, m.reap,
	}
	for range steps {
		k := m.keys[d("key", len(m.keys))]
		all[d("call", len(all))](ctx, k)
		for _, k := range m.keys {
			m.compare(ctx, k)
		}
	}
}

// compare reads, and fails unless it is as the model says.
func (m *model) compare(ctx context.Context, k *key) {
	e, found, err := m.Driver.Find(ctx, []idempotency.Scope{k.scope})
	suite.Must(err, "find")
	suite.Equal(k.there, found, "whether there is a record")
	if found {
		suite.Equal(k.late(m.now), e.LeaseExpired, "whether the lease has expired of a record that is "+string(k.state))
		m.reads(ctx, k.claim, k.state, k.answer, "a record that is "+string(k.state))
	}
}

func (k *key) late(now time.Duration) bool { return k.lease <= now }

// held draws a claim, mostly the last one, and says whether it is held in that state.
func (m *model) held(k *key, state idempotency.State) (c idempotency.Claim, ok bool) {
	switch n := len(k.claims); {
	case n == 0:
		c = idempotency.Claim{Scope: k.scope, Owner: "nobody", Attempt: 1, Operation: "none", Revision: 1}
	case m.draw("claim", 4) > 0:
		c = k.claims[n-1]
	default:
		c = k.claims[m.draw("stale claim", n)]
	}
	return c, k.there && k.claim == c && k.state == state
}

func (k *key) become(c idempotency.Claim, s idempotency.State, answer []byte) {
	k.claim, k.state, k.answer = c, s, answer
	k.claims = append(k.claims, c)
}

func (m *model) claimIt(ctx context.Context, k *key) {
	if k.there {
		return // comparing claims it
	}
	k.become(m.claims(ctx, request(k.scope), "a free key"), idempotency.Claimed, nil)
	k.there, k.created, k.lease, k.expiry = true, m.now, m.now+lease, m.now+expiry
}

func (m *model) takeOver(ctx context.Context, k *key) {
	c, ok := m.held(k, idempotency.Claimed)
	r := request(k.scope)
	now, taken, err := m.Driver.TakeOver(ctx, c, r)
	suite.Must(err, "taking over")
	ok = ok && k.late(m.now)
	suite.Equal(ok, taken, "taking over")
	if !ok {
		return
	}
	want := idempotency.Claim{Scope: k.scope, Owner: r.Owner, Attempt: c.Attempt + 1, Operation: r.Operation, Revision: c.Revision + 1}
	suite.Equal(want, now, "taking over")
	k.become(now, idempotency.Claimed, nil)
	k.lease, k.expiry = m.now+lease, m.now+expiry
}

// told fails unless the owner hears what is so.
func told(ok bool, err error, what string) {
	if ok {
		suite.Must(err, what)
	} else {
		refuses(err, what)
	}
}

// moved is c after a change.
func moved(c idempotency.Claim) idempotency.Claim {
	c.Revision++
	return c
}

func (m *model) complete(ctx context.Context, k *key) {
	c, ok := m.held(k, idempotency.Claimed)
	result := []error{nil, errRollback}[m.draw("rollback", 2)]
	a := inline(fmt.Sprint("answer ", c.Operation))
	a.Large = m.draw("large", 2) == 1
	err := m.Runner.InRootWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := m.Driver.Start(ctx, t, c, nil); err != nil {
			return err
		}
		if err := m.Driver.Complete(ctx, t, c, a); err != nil {
			return err
		}
		return result
	})
	if ok && result != nil {
		suite.Equal(true, errors.Is(err, errRollback), "a transaction is rolled back")
		return
	}
	told(ok, err, "completing")
	if ok {
		k.become(moved(c), idempotency.Completed, a.Payload)
		m.keep(k)
	}
}

// keep has an answer last from now on.
func (m *model) keep(k *key) { k.expiry += m.now - k.created }

func (m *model) execute(ctx context.Context, k *key) {
	c, ok := m.held(k, idempotency.Claimed)
	now, err := m.Driver.Execute(ctx, c, lease, nil)
	told(ok, err, "executing")
	if ok {
		suite.Equal(moved(c), now, "executing")
		k.become(now, idempotency.Executing, nil)
		k.lease = m.now + lease
	}
}

func (m *model) renew(ctx context.Context, k *key) {
	c, ok := m.held(k, idempotency.Executing)
	told(ok, m.Driver.Renew(ctx, c, 2*lease), "renewing")
	if ok {
		k.lease = m.now + 2*lease
	}
}

func (m *model) settle(ctx context.Context, k *key) {
	moves := []struct{ from, to idempotency.State }{
		{idempotency.Claimed, idempotency.Failed},
		{idempotency.Claimed, ""},
		{idempotency.Executing, idempotency.Completed},
		{idempotency.Executing, idempotency.Failed},
		{idempotency.Executing, idempotency.Abandoned},
		{idempotency.Abandoned, idempotency.Completed},
		{idempotency.Abandoned, idempotency.Failed},
		{idempotency.Abandoned, ""},
	}
	move := moves[m.draw("move", len(moves))]
	c, ok := m.held(k, move.from)
	var a idempotency.Answer
	if move.to == idempotency.Completed || move.to == idempotency.Failed {
		a = idempotency.Answer{Payload: []byte(c.Operation), Large: m.draw("large", 2) == 1}
	}
	if move.from == idempotency.Abandoned && m.draw("in a transaction", 2) == 1 {
		told(ok, m.reconcile(ctx, c, move.from, move.to, a), "reconciling")
	} else {
		told(ok, m.Driver.Settle(ctx, c, move.from, move.to, a), "settling")
	}
	switch {
	case ok && move.to == "":
		k.there = false
	case ok:
		k.become(moved(c), move.to, a.Payload)
		if move.to != idempotency.Abandoned {
			m.keep(k)
		}
	}
}

func (m *model) abandon(ctx context.Context, k *key) {
	c, ok := m.held(k, idempotency.Executing)
	ok = ok && k.late(m.now)
	marked, err := m.Driver.Abandon(ctx, c)
	suite.Must(err, "abandoning")
	suite.Equal(ok, marked, "abandoning")
	if ok {
		k.become(moved(c), idempotency.Abandoned, nil)
	}
}

func (m *model) letPass(ctx context.Context, _ *key) {
	d := []time.Duration{lease * 6 / 10, 2 * lease, 2 * expiry}[m.draw("time", 3)]
	m.pass(ctx, d)
	m.now += d
}

// many is more than there can be.
const many = 10_000

func (m *model) expire(ctx context.Context, _ *key) {
	m.expires(ctx, many)
	for _, k := range m.keys {
		if k.there && k.state == idempotency.Executing && k.late(m.now) {
			k.become(moved(k.claim), idempotency.Abandoned, nil)
		}
	}
}

func (m *model) reap(ctx context.Context, _ *key) {
	age := []time.Duration{0, expiry, 3 * expiry}[m.draw("age", 3)]
	_, _, err := m.Driver.Reap(ctx, age, idempotency.Cursor{}, many)
	suite.Must(err, "reaping")
	for _, k := range m.keys {
		switch k.state {
		case idempotency.Completed, idempotency.Failed:
		case idempotency.Claimed:
			if !k.late(m.now) {
				continue
			}
		default:
			continue
		}
		if k.expiry <= m.now && k.created+age <= m.now {
			k.there = false
		}
	}
}
