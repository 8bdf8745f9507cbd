package outbox

import (
	"sync"
	"time"

	"caskeleton.dev/internal/backoff"
)

// pauseMax bounds the pauses of a whole relay: what was down must not stay unused for long once it is up.
const pauseMax = 5 * time.Second

// tellEvery bounds how often a pause is logged, however often it begins and ends.
const tellEvery = time.Minute

// pause keeps a relay from asking what is down again and again. Safe for concurrent use.
type pause struct {
	base, limit time.Duration

	mu    sync.Mutex
	step  int // consecutive pauses
	until time.Time
	told  time.Time // when trip last asked for a line in the log
}

func newPause(o *RelayOptions) *pause {
	return &pause{base: o.BackoffBase, limit: min(o.BackoffMax, pauseMax)}
}

// trip starts a pause, a longer one than before, and reports whether it is time to log that, once a minute at most. Failures during a pause
// are of calls that were under way as it began: they belong to it.
func (p *pause) trip() (tell bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Before(p.until) {
		return false
	}
	p.step++
	p.until = now.Add(backoff.Jitter(backoff.Bound(p.base, p.limit, p.step), 4))
	if !p.told.IsZero() && now.Sub(p.told) < tellEvery {
		return false
	}
	p.told = now
	return true
}

// succeeded makes the next pause a short one. A pause under way goes on: where one of two brokers is down, the other one's success must not
// undo it.
func (p *pause) succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = 0
}

// left returns how much of a pause is left, and whether nothing has succeeded since the last one.
func (p *pause) left() (d time.Duration, doubtful bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Until(p.until), p.step > 0
}
