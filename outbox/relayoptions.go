package outbox

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
)

const (
	defaultBatchSize      = 100
	defaultRunSize        = 20
	defaultConcurrency    = 2 * defaultBatchSize
	defaultLease          = 30 * time.Second
	defaultPublishTimeout = 10 * time.Second
	defaultMargin         = time.Second
	defaultPollInterval   = time.Second
	defaultBackoffBase    = 100 * time.Millisecond
	defaultBackoffMax     = time.Minute
	defaultDrainTimeout   = 5 * time.Second
	ownerBytes            = 64
)

// RelayOptions configure a [Relay]. The zero value is the default.
type RelayOptions struct {
	Owner          string               // names this relay in its claims; "" means a random name
	BatchSize      int                  // lanes that one claim, or one settlement, takes at most; 0 means 100
	RunSize        int                  // events of one lane that are published at a time; 0 means 20
	Concurrency    int                  // lanes claimed and not yet settled, and so published at once, at most; 0 means 200: while one batch is settled, the next is under way
	Lease          time.Duration        // how long a claim lasts; longer than PublishTimeout and Margin together; 0 means 30 s
	PublishTimeout time.Duration        // how long one Publish may take; 0 means 10 s
	Margin         time.Duration        // how long before its lease ends a lane is published no more: the difference that clocks may run up during a lease; 0 means 1 s
	PollInterval   time.Duration        // how long a relay that nothing wakes waits at most before it looks, less a jitter of up to a quarter; 0 means 1 s
	BackoffBase    time.Duration        // the longest wait after the first failure of an event; it doubles with each more; 0 means 100 ms
	BackoffMax     time.Duration        // where that doubling ends; 0 means 1 min
	DrainTimeout   time.Duration        // how long what is being published at the end may go on; 0 means 5 s
	Bell           *Bell                // rung by the outbox of the same process; nil means that the relay only polls
	Meter          metric.MeterProvider // nil means no metrics
	Logger         *slog.Logger         // nil means slog.Default()
}

// fill sets defaults and refuses what cannot work.
func (o *RelayOptions) fill() error {
	for _, n := range []struct {
		name    string
		v       *int
		def     int
		largest int
	}{
		{"BatchSize", &o.BatchSize, defaultBatchSize, 10_000},
		{"RunSize", &o.RunSize, defaultRunSize, 10_000},
		{"Concurrency", &o.Concurrency, defaultConcurrency, 100_000},
	} {
		if *n.v < 0 || *n.v > n.largest {
			return fmt.Errorf("outbox: %s is %d; use 1 to %d, or 0 for %d", n.name, *n.v, n.largest, n.def)
		}
		if *n.v == 0 {
			*n.v = n.def
		}
	}
	for _, d := range []struct {
		name string
		v    *time.Duration
		def  time.Duration
	}{
		{"Lease", &o.Lease, defaultLease},
		{"PublishTimeout", &o.PublishTimeout, defaultPublishTimeout},
		{"Margin", &o.Margin, defaultMargin},
		{"PollInterval", &o.PollInterval, defaultPollInterval},
		{"BackoffBase", &o.BackoffBase, defaultBackoffBase},
		{"BackoffMax", &o.BackoffMax, defaultBackoffMax},
		{"DrainTimeout", &o.DrainTimeout, defaultDrainTimeout},
	} {
		if *d.v < 0 {
			return fmt.Errorf("outbox: %s is %v; it must be positive, or 0 for %v", d.name, *d.v, d.def)
		}
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	switch {
	case o.Lease-o.PublishTimeout <= o.Margin:
		return fmt.Errorf("outbox: Lease is %v, no longer than PublishTimeout, %v, and Margin, %v, together; make it longer, or them shorter",
			o.Lease, o.PublishTimeout, o.Margin)
	case o.BackoffBase > o.BackoffMax:
		return fmt.Errorf("outbox: BackoffBase is %v, longer than BackoffMax, %v; make it shorter, or that longer", o.BackoffBase, o.BackoffMax)
	case len(o.Owner) > ownerBytes:
		return fmt.Errorf("outbox: Owner has %d bytes; use %d at most", len(o.Owner), ownerBytes)
	}
	if o.Owner == "" {
		o.Owner = rand.Text()
	}
	if o.Bell == nil {
		o.Bell = NewBell()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}
