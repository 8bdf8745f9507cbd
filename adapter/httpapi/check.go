package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"caskeleton.dev/fault"
)

// Check is one thing that readiness depends on, or that it reports.
type Check struct {
	Name     string                          // public: "database"
	Probe    func(ctx context.Context) error // must heed ctx, which has a deadline; its error goes to the log alone
	Degrades bool                            // its failure leaves the service ready: it is only named as degraded
}

// checkRunner runs a check at most once at a time, however many ask: probes cannot pile up on a dependency that hangs.
type checkRunner struct {
	Check
	timeout time.Duration
	log     *slog.Logger

	mu     sync.Mutex
	flight *flight
	failed bool // as last logged
}

type flight struct {
	done chan struct{}
	err  error // set before done closes
}

// run returns the result of a run that is under way, or of a new one. The run belongs to all who wait for it, so it outlives whoever
// asked first, but not the timeout.
func (c *checkRunner) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	c.mu.Lock()
	f := c.flight
	if f == nil {
		f = &flight{done: make(chan struct{})}
		c.flight = f
		go c.fly(ctx, f)
	}
	c.mu.Unlock()
	defer cancel()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		err := c.late()
		c.logChange(ctx, err)
		return err
	}
}

func (c *checkRunner) fly(ctx context.Context, f *flight) {
	defer func() {
		if v := recover(); v != nil {
			f.err = fault.Text(fmt.Sprintf("the probe panicked with a %T", v))
		}
		c.mu.Lock()
		c.flight = nil
		c.mu.Unlock()
		c.logChange(ctx, f.err)
		close(f.done)
	}()
	f.err = c.Probe(ctx)
	if f.err == nil && ctx.Err() != nil {
		f.err = c.late()
	}
}

func (c *checkRunner) late() error { return fault.Text(fmt.Sprintf("no answer within %v", c.timeout)) }

// logChange logs that a check began to fail, or to pass again, and is silent while nothing changes.
func (c *checkRunner) logChange(ctx context.Context, err error) {
	c.mu.Lock()
	changed := c.failed != (err != nil)
	c.failed = err != nil
	c.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		c.log.LogAttrs(ctx, slog.LevelWarn, "health check failing", slog.String("check", c.Name), slog.String("error", fault.Reason(err)))
	default:
		c.log.LogAttrs(ctx, slog.LevelInfo, "health check passing again", slog.String("check", c.Name))
	}
}
