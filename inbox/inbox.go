package inbox

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"caskeleton.dev/tx"
)

const (
	defaultMaxAttempts = 10
	defaultCountFirst  = 1000
	defaultBaseDelay   = time.Second
	defaultMaxDelay    = 5 * time.Minute
	longestDelay       = 24 * time.Hour
	settleTimeout      = 15 * time.Second // bound on counting and parking after the handler, which the caller's cancellation does not reach
)

// Options configure an [Inbox]. The zero value is the default.
type Options struct {
	MaxAttempts int                  // tries before a message is parked; 0 means 10
	CountFirst  int                  // messages after New that are counted before the handler, where the broker does not count; 0 means 1000
	BaseDelay   time.Duration        // upper bound of the delay after the first failure; it doubles with each; 0 means 1 s
	MaxDelay    time.Duration        // upper bound of any delay, at most 24 h; 0 means 5 min
	Meter       metric.MeterProvider // nil means no metrics
	Logger      *slog.Logger         // nil means slog.Default()
}

// Inbox handles the messages of one consumer. Safe for concurrent use.
type Inbox struct {
	driver   Driver
	runner   *tx.Runner
	consumer string
	opts     Options
	metrics  metrics
	first    atomic.Int64 // messages counted because they were among the first
	open     sync.Map     // ids being handled, where the broker does not count
}

// New returns the inbox of a consumer (1 to 255 characters, such as "shipping") that keeps its rows with d, in transactions of r. Where
// the broker does not count deliveries, make a new one for each assignment of partitions too.
func New(d Driver, r *tx.Runner, consumer string, o *Options) (*Inbox, error) {
	in := &Inbox{driver: d, runner: r, consumer: consumer}
	if o != nil {
		in.opts = *o
	}
	if d == nil || r == nil {
		return nil, errors.New("inbox: a driver and a runner are required; adapter/postgres/pginbox has a driver")
	}
	if problem := nameProblem(consumer); problem != "" {
		return nil, fmt.Errorf("inbox: consumer %s; %s", problem, nameFix)
	}
	if err := in.opts.fill(); err != nil {
		return nil, err
	}
	var err error
	in.metrics, err = newMetrics(in.opts.Meter)
	return in, err
}

// fill sets defaults and refuses what cannot work.
func (o *Options) fill() error {
	switch {
	case o.MaxAttempts < 0:
		return fmt.Errorf("inbox: MaxAttempts is %d; it must be positive, or 0 for %d", o.MaxAttempts, defaultMaxAttempts)
	case o.CountFirst < 0:
		return fmt.Errorf("inbox: CountFirst is %d; it must be positive, or 0 for %d", o.CountFirst, defaultCountFirst)
	case o.BaseDelay < 0:
		return fmt.Errorf("inbox: BaseDelay is %v; it must be positive, or 0 for %v", o.BaseDelay, defaultBaseDelay)
	case o.MaxDelay < 0 || o.MaxDelay > longestDelay:
		return fmt.Errorf("inbox: MaxDelay is %v; use up to %v, or 0 for %v", o.MaxDelay, longestDelay, defaultMaxDelay)
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = defaultMaxAttempts
	}
	if o.CountFirst == 0 {
		o.CountFirst = defaultCountFirst
	}
	if o.BaseDelay == 0 {
		o.BaseDelay = defaultBaseDelay
	}
	if o.MaxDelay == 0 {
		o.MaxDelay = max(defaultMaxDelay, min(o.BaseDelay, longestDelay))
	}
	if o.MaxDelay < o.BaseDelay {
		return fmt.Errorf("inbox: MaxDelay is %v, shorter than BaseDelay, %v; make it longer, or that shorter", o.MaxDelay, o.BaseDelay)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}
