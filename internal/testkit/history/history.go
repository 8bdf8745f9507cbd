// Package history records calls that overlap, and has porcupine judge whether what they were answered can have come from what a model describes:
// each call took effect at one moment between its request and its answer (linearizability; Herlihy and Wing, 1990).
package history

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"caskeleton.dev/internal/testkit/suite"
)

// checkTimeout bounds a judgement, whose search may be exponential.
const checkTimeout = 30 * time.Second

// Never is the answer of a call that may have taken effect at any time since.
const Never = time.Duration(math.MaxInt64)

// History holds calls. It is safe for concurrent use.
type History[E any] struct {
	began time.Time

	mu     sync.Mutex
	events []E
}

// New begins one.
func New[E any]() *History[E] { return &History[E]{began: time.Now()} }

// Now is the time since it began.
func (h *History[E]) Now() time.Duration { return time.Since(h.began) }

// Add keeps e.
func (h *History[E]) Add(e E) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// Events returns what was added, once nothing adds any more.
func (h *History[E]) Events() []E { return h.events }

// Model says what a history must be like.
type Model[S, E any] struct {
	Name       string                                 // of what it models, with its article
	Step       func(s S, e E) []S                     // what may be the state after e; none where e cannot have happened. The zero S is the first
	Span       func(e E) (call, answer time.Duration) // since the history began
	Transcript func([]E) string                       // of calls in the order of their requests, for whoever reads the failure
}

// Judge fails the check unless the events, all of one key, can have come from what m describes. Not being able to tell is a failure too.
func (m Model[S, E]) Judge(key string, events []E) {
	model := (&porcupine.NondeterministicModel{
		Init: func() []any { var first S; return []any{first} },
		Step: func(s, input, _ any) []any {
			var next []any
			for _, n := range m.Step(s.(S), input.(E)) { //nolint:errcheck // they are what this model is given
				next = append(next, n)
			}
			return next
		},
	}).ToModel()
	operations := make([]porcupine.Operation, 0, len(events))
	for _, e := range events {
		call, answer := m.Span(e)
		operations = append(operations, porcupine.Operation{Input: e, Call: int64(call), Return: int64(answer)})
	}
	switch porcupine.CheckOperationsTimeout(model, operations, checkTimeout) {
	case porcupine.Ok:
	case porcupine.Illegal:
		slices.SortFunc(events, func(a, b E) int {
			x, _ := m.Span(a)
			y, _ := m.Span(b)
			return cmp.Compare(x, y)
		})
		suite.Fail("these calls on %s cannot have come from %s:\n%s", key, m.Name, m.Transcript(events))
	default:
		suite.Fail("nobody can tell within %v whether the %d calls on %s can have come from %s", checkTimeout, len(events), key, m.Name)
	}
}
