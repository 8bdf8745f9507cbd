package idempotency

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
)

const (
	defaultLease   = 30 * time.Second
	defaultExpiry  = 24 * time.Hour
	defaultInline  = 8 << 10
	defaultAnswer  = 16 << 20
	ownerNameBytes = 64
)

// MaxInlineLimit is the largest [Options.InlineLimit], in bytes.
const MaxInlineLimit = 1 << 20

// Options configure a [Guard]. The zero value is the default.
type Options struct {
	Lease       time.Duration // until the claim of an owner that died may be taken over; 0 means 30 s
	Expiry      time.Duration // how long an answer is kept at least, once it is stored; 0 means 24 h
	InlineLimit int           // size in bytes up to which an answer is stored beside its record; at most MaxInlineLimit; 0 means 8 KiB
	AnswerLimit int           // size of the largest answer in bytes, as stored; 0 means 16 MiB
	Responses   ResponseStore // keeps answers over InlineLimit; nil means the driver, in the database
	Owner       string        // names this process in the records; "" means a random name
	Meter       metric.MeterProvider
	Logger      *slog.Logger
}

// fill sets defaults and refuses what cannot work.
func (o *Options) fill() error {
	if err := o.bounds(); err != nil {
		return err
	}
	switch {
	case o.InlineLimit < 0 || o.InlineLimit > MaxInlineLimit:
		return fmt.Errorf("idempotency: InlineLimit is %d; use 1 to %d bytes, or 0 for %d", o.InlineLimit, MaxInlineLimit, defaultInline)
	case len(o.Owner) > ownerNameBytes:
		return fmt.Errorf("idempotency: Owner has %d bytes; at most %d are stored", len(o.Owner), ownerNameBytes)
	}
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.Expiry == 0 {
		o.Expiry = defaultExpiry
	}
	if o.InlineLimit == 0 {
		o.InlineLimit = defaultInline
	}
	if o.AnswerLimit == 0 {
		o.AnswerLimit = defaultAnswer
	}
	if o.AnswerLimit < o.InlineLimit {
		return fmt.Errorf("idempotency: AnswerLimit is %d, below InlineLimit, %d", o.AnswerLimit, o.InlineLimit)
	}
	if o.Owner == "" {
		o.Owner = rand.Text()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o.bounds()
}

// bounds refuses times that cannot work.
func (o *Options) bounds() error {
	switch {
	case o.Lease < 0 || o.Lease > 0 && o.Lease < time.Millisecond:
		return fmt.Errorf("idempotency: Lease is %v; it must be 1 ms or more, or 0 for %v", o.Lease, defaultLease)
	case o.Expiry < 0:
		return fmt.Errorf("idempotency: Expiry is %v; it must be positive, or 0 for %v", o.Expiry, defaultExpiry)
	case o.Lease > 0 && o.Expiry > 0 && o.Expiry < o.Lease:
		return fmt.Errorf("idempotency: Expiry is %v, shorter than Lease, %v", o.Expiry, o.Lease)
	}
	return nil
}
