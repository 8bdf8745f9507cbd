package idempotency

import "time"

// CallOptions are what the operations of one route differ in. A zero field means that of the guard. Which outcomes are stored is what an
// operation says by its error: none, [ErrRejected], or any other.
type CallOptions struct {
	Lease  time.Duration // see [Options]
	Expiry time.Duration // likewise
}

// With returns a guard on the same records with other options. It does not look at them: where they are not valid, [Do] and [DoExternal]
// return the error before they look anything up. Validate tells it sooner.
func (g *Guard) With(o CallOptions) *Guard {
	other := *g
	if o.Lease != 0 {
		other.opts.Lease = o.Lease
	}
	if o.Expiry != 0 {
		other.opts.Expiry = o.Expiry
	}
	other.invalid = other.opts.bounds()
	return &other
}

// Validate returns why nothing can be done with the options of a guard that [Guard.With] returned.
func (g *Guard) Validate() error { return g.invalid }

// Expiry returns how long answers are kept at least, for what is told to clients.
func (g *Guard) Expiry() time.Duration { return g.opts.Expiry }
