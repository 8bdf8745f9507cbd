package intlock_test

import (
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/lock"
	"caskeleton.dev/lock/locktest"
)

func TestConformance(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			dsn := database(t, layout70)
			h := locktest.Harness{New: func(t *testing.T) locktest.Store {
				t.Helper()
				a, b := newNode(t, dsn, mode), newNode(t, dsn, mode)
				return locktest.Apart(locktest.Store{Driver: a, Other: b, Expire: a.expire}, rand.Text())
			}}
			locktest.TestDriver(t, h)
			locktest.TestHistory(t, h, nil)
		})
	}
}

// Neither many who want a key at once nor the default isolation of the database makes a statement fail.
func TestContentionIsNoErrorOfTheServers(t *testing.T) {
	dsn := database(t, layout70+`;
		do $$ begin execute format('alter database %I set default_transaction_isolation = serializable', current_database()); end $$`)
	t.Run("contend", func(t *testing.T) {
		nodes := []node{newNode(t, dsn, "cache_statement"), newNode(t, dsn, "exec")}
		var tries sync.WaitGroup
		for i := range 16 {
			tries.Go(func() {
				n, token := nodes[i%2], newToken()
				for range 20 {
					_, err := n.Acquire(t.Context(), key("k"), token, time.Minute, true)
					if err == nil {
						_, err = n.Renew(t.Context(), key("k"), token, time.Microsecond)
					}
					if err == nil && i%4 == 0 {
						_, err = n.Release(t.Context(), key("k"), token)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		tries.Wait()
		h, err := nodes[0].Look(t.Context(), key("k"))
		require.NoError(t, err)
		require.Equal(t, lock.Holder{}, h)
	})
	quiet(t, dsn)
}
