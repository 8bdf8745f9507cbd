package idempotency

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/registry"
)

// Whoever builds on the package and whoever sets variables must find the same service.
func TestDefaultsAreThoseOfTheRegistry(t *testing.T) {
	r, err := registry.Load(os.DirFS("../registry"))
	require.NoError(t, err)
	var o Options
	require.NoError(t, o.fill())
	registered := map[string]string{}
	for _, k := range r.Keys {
		registered[k.Name] = k.Default
	}
	for name, d := range map[string]time.Duration{"APP_IDEMPOTENCY_LEASE": o.Lease, "APP_IDEMPOTENCY_EXPIRY": o.Expiry} {
		want, err := time.ParseDuration(registered[name])
		require.NoError(t, err, name)
		require.Equal(t, want, d, name)
	}
	require.Equal(t, registered["APP_IDEMPOTENCY_INLINE_LIMIT"], fmt.Sprintf("%dKiB", o.InlineLimit>>10))
	require.Zero(t, o.InlineLimit%1024)
}
