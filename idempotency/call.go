package idempotency

import "time"

// CallOptions are the options of a guard that may differ from route to route. A zero field means that of the guard. Which outcomes are
// stored is no option: the operation says so by its error (none, [ErrRejected], or any other).
type CallOptions struct {
	Lease  time.Duration // as Options.Lease
	Expiry time.Duration // as Options.Expiry
}

// With returns a guard on the same records with other options. It does not validate them: if they are not valid, [Do] and [DoExternal]
// return the error before they look anything up. [Guard.Validate] returns it at once.
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

// Validate returns an error if the options that [Guard.With] was given are not valid.
func (g *Guard) Validate() error { return g.invalid }

// Expiry returns the least time for which answers are kept, to be told to clients.
func (g *Guard) Expiry() time.Duration { return g.opts.Expiry }
