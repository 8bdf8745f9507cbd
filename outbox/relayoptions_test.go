package outbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/outbox"
)

func TestNewRelayRefusesWhatCannotWork(t *testing.T) {
	for want, o := range map[string]outbox.RelayOptions{
		"BatchSize is -1; use 1 to 10000, or 0 for 100":                {BatchSize: -1},
		"RunSize is 10001; use 1 to 10000, or 0 for 20":                {RunSize: 10_001},
		"Concurrency is -1; use 1 to 100000, or 0 for 200":             {Concurrency: -1},
		"Lease is -1s; it must be positive, or 0 for 30s":              {Lease: -time.Second},
		"PublishTimeout is -1s; it must be positive, or 0 for 10s":     {PublishTimeout: -time.Second},
		"Margin is -1s; it must be positive, or 0 for 1s":              {Margin: -time.Second},
		"PollInterval is -1s; it must be positive, or 0 for 1s":        {PollInterval: -time.Second},
		"BackoffBase is -1s; it must be positive, or 0 for 100ms":      {BackoffBase: -time.Second},
		"BackoffMax is -1s; it must be positive, or 0 for 1m0s":        {BackoffMax: -time.Second},
		"DrainTimeout is -1s; it must be positive, or 0 for 5s":        {DrainTimeout: -time.Second},
		"Lease is 11s, no longer than PublishTimeout, 10s, and Margin": {Lease: 11 * time.Second},
		"BackoffBase is 2m0s, longer than BackoffMax, 1m0s":            {BackoffBase: 2 * time.Minute},
		"Owner has 65 bytes; use 64 at most":                           {Owner: strings.Repeat("x", 65)},
	} {
		given := o
		_, err := outbox.NewRelay(newStore(), &broker{}, &o)
		require.ErrorContains(t, err, want)
		require.Equal(t, given, o, "options are copied")
	}
	_, err := outbox.NewRelay(nil, &broker{}, nil)
	require.ErrorContains(t, err, "a driver and a publisher are required")
	_, err = outbox.NewRelay(newStore(), nil, nil)
	require.ErrorContains(t, err, "a driver and a publisher are required")
}

func TestRelayDefaults(t *testing.T) {
	relay(t, func(b *bench) {
		b.start()
		r := b.store.asks()[0]
		require.NotEmpty(t, r.Owner)
		require.Equal(t, outbox.ClaimRequest{Owner: r.Owner, Limit: 100, RunSize: 20, Lease: 30 * time.Second}, r)
		b.stop()
		b.start()
		require.NotEqual(t, r.Owner, b.store.asks()[1].Owner, "each relay is its own owner")
	})
}
