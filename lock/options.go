package lock

import (
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
)

const (
	defaultRegion = "DEFAULT" // Spring Integration's too
	defaultWait   = 3 * time.Second
	defaultLease  = 30 * time.Second
	defaultPoll   = 100 * time.Millisecond
)

// Options configure a [Locker]. The zero value is the default.
type Options struct {
	Region string               // keeps applications apart that share a store; "" means "DEFAULT"
	Wait   time.Duration        // how long an Acquire without options waits; 0 means 3 s
	Lease  time.Duration        // how long it holds, from Wait to the driver's MaxLease; 0 means 30 s
	Poll   time.Duration        // pause between two looks at a held key, at random from half of it to all; 0 means 100 ms
	Meter  metric.MeterProvider // nil means no metrics
	Logger *slog.Logger         // nil means slog.Default()
}

// AcquireOptions bound one acquisition.
type AcquireOptions struct {
	Wait  time.Duration // how long to wait for a key that is held; 0 tries once
	Lease time.Duration // how long to hold it at most, not shorter than Wait; 0 means the locker's default
}

// fill sets defaults and refuses what cannot work.
func (o *Options) fill(longest time.Duration) error {
	for _, f := range []struct {
		name     string
		value    *time.Duration
		standard time.Duration
	}{{"Wait", &o.Wait, defaultWait}, {"Lease", &o.Lease, defaultLease}, {"Poll", &o.Poll, defaultPoll}} {
		if *f.value < 0 {
			return fmt.Errorf("lock: %s is %v; it must be positive, or 0 for %v", f.name, *f.value, f.standard)
		}
		if *f.value == 0 {
			*f.value = f.standard
		}
	}
	if o.Region == "" {
		o.Region = defaultRegion
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return (&AcquireOptions{o.Wait, o.Lease}).check(longest)
}

// bounds returns what an acquisition asks for, with defaults in place.
func (l *Locker) bounds(o *AcquireOptions) (AcquireOptions, error) {
	a := AcquireOptions{l.opts.Wait, l.opts.Lease}
	if o != nil {
		a.Wait = o.Wait
		if o.Lease != 0 {
			a.Lease = o.Lease
		}
	}
	return a, a.check(l.driver.MaxLease())
}

func (a *AcquireOptions) check(longest time.Duration) error {
	switch {
	case a.Wait < 0:
		return fmt.Errorf("lock: Wait is %v; it must be positive, or 0 to try once", a.Wait)
	case a.Lease < a.Wait:
		return fmt.Errorf("lock: Lease is %v, shorter than Wait, %v; make it longer, or that shorter", a.Lease, a.Wait)
	}
	return checkLease(a.Lease, longest)
}

func checkLease(lease, longest time.Duration) error {
	if lease <= 0 || lease > longest {
		return fmt.Errorf("lock: Lease is %v; use more than 0 and up to %v, which is what the driver can keep", lease, longest)
	}
	return nil
}
