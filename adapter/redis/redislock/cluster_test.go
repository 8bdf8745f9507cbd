//go:build e2e

package redislock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/redistest"
	"caskeleton.dev/lock"
)

// A cluster refuses a script whose keys are on several nodes, and any key that a script does not name.
func TestACluster(t *testing.T) {
	srv := redistest.Start(t, "--cluster-enabled", "yes")
	require.Equal(t, "OK", srv.Do("CLUSTER", "ADDSLOTSRANGE", "0", "16383"))
	require.Eventually(t, func() bool { return strings.Contains(srv.Do("CLUSTER", "INFO"), "cluster_state:ok") }, soon, instant)
	d := open(t, srv.Addr(), "")
	e := listen(t.Context(), t, open(t, srv.Addr(), ""))
	await(t, e.ready, "the subscription")
	for i := range 20 { // in slots of all kinds
		k := lock.Key{Region: "DEFAULT", Name: fmt.Sprintf("orders/{%d}", i)}
		h, err := d.Acquire(t.Context(), k, lock.Token{1}, long, false)
		require.NoError(t, err)
		require.False(t, h.Held)
		h, err = d.Acquire(t.Context(), k, lock.Token{2}, long, true)
		require.NoError(t, err)
		require.True(t, h.Contended)
		renewed, err := d.Renew(t.Context(), k, lock.Token{1}, long)
		require.NoError(t, err)
		require.True(t, renewed)
		freed, err := d.Release(t.Context(), k, lock.Token{1})
		require.NoError(t, err)
		require.Equal(t, lock.Released, freed)
		require.Equal(t, k.Digest(), await(t, e.rings, "the release"))
	}
}
