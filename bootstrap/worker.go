package bootstrap

import (
	"context"
	"errors"
	"sync"

	"caskeleton.dev/fault"
)

// worker is something that runs until it is told to stop.
type worker struct {
	name string
	run  func(ctx context.Context) error
}

// crew is workers that stop together. The zero crew has none.
type crew struct {
	stop   context.CancelFunc
	done   sync.WaitGroup
	failed chan error // of a worker that ended by itself; nil, and so silent, without workers
}

// employ runs workers until end. The end of ctx does not reach them, since what they need is taken down in order.
func (c *crew) employ(ctx context.Context, workers ...worker) {
	ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.failed = make(chan error, len(workers))
	for _, w := range workers {
		c.done.Go(func() {
			if err := w.run(ctx); err != nil {
				c.failed <- fault.Textf("%s: %w", w.name, err)
			} else if ctx.Err() == nil {
				c.failed <- fault.Textf("%s ended by itself", w.name)
			}
		})
	}
}

// end stops the workers, waits for them, and returns the failures that nobody has read.
func (c *crew) end() error {
	if c.stop == nil {
		return nil
	}
	c.stop()
	c.done.Wait()
	close(c.failed)
	var errs []error
	for err := range c.failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
