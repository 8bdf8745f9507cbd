package outbox

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Relay delivers recorded events: it claims lanes, publishes their runs and settles what became of them. Any number of relays may work
// on one store.
//
// A claim takes no more lanes than can be published at once, so none waits for its turn while its lease runs down, and no lease needs
// renewing: PublishTimeout and Margin fit into it.
type Relay struct {
	driver    Driver
	publisher Publisher
	opts      RelayOptions
	metrics   metrics
}

// NewRelay returns a relay that hands what d keeps to p.
func NewRelay(d Driver, p Publisher, o *RelayOptions) (*Relay, error) {
	r := &Relay{driver: d, publisher: p}
	if o != nil {
		r.opts = *o
	}
	if d == nil || p == nil {
		return nil, errors.New("outbox: a driver and a publisher are required; adapter/postgres/pgoutbox and adapter/broker/natsbroker have them")
	}
	if err := r.opts.fill(); err != nil {
		return nil, err
	}
	var err error
	r.metrics, err = newMetrics(r.opts.Meter)
	return r, err
}

// Run delivers until ctx is cancelled; failures of the store or the broker do not end it. It then claims nothing more, lets what is being
// published go on for DrainTimeout, settles it, gives the rest back and returns nil, 5 s after DrainTimeout at the latest; all its
// goroutines have ended. It waits for a publisher that does not heed its context.
func (r *Relay) Run(ctx context.Context) error {
	var owned sync.WaitGroup
	defer owned.Wait()
	work, stopWork := outlive(ctx, &owned, r.opts.DrainTimeout)
	defer stopWork()
	settling, stopSettling := outlive(ctx, &owned, r.opts.DrainTimeout+callTimeout)
	defer stopSettling()

	st := newSettler(r)
	settled := make(chan struct{})
	owned.Go(func() { defer close(settled); st.run(settling) })
	newLooker(r, st).run(ctx, work)
	st.close()
	<-settled
	return nil
}

// outlive returns a context that ends d after ctx does, or when it is cancelled.
func outlive(ctx context.Context, owned *sync.WaitGroup, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	owned.Go(func() {
		select {
		case <-ctx.Done():
		case <-out.Done():
			return
		}
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			cancel()
		case <-out.Done():
		}
	})
	return out, cancel
}
