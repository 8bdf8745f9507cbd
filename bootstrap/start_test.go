package bootstrap

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A pool that is too small is refused before anything is connected to: nobody listens at the address.
func TestAPoolTooSmallForNestedTransactionsIsRefused(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	c := configOf(t, "DATABASE_URL=postgres://u:p@127.0.0.1:1/d?sslmode=disable", "APP_DB_MAX_CONNS=8")
	err := Run(t.Context(), c, Service{Name: "test", Nesting: &Nesting{Workers: 8, Depth: 2}}, io.Discard, log)
	require.ErrorContains(t, err, "APP_DB_MAX_CONNS")
	require.ErrorContains(t, err, "raise it to 9")
	require.NoError(t, (&Nesting{Workers: 7, Depth: 2}).check(c))
	require.NoError(t, (*Nesting)(nil).check(c))
}

// The server keeps a session whose client has vanished for APP_DB_IDLE_TX_TIMEOUT, and no verdict is final before its end.
func TestOutcomesAreLookedUpForLongerThanASessionMayIdle(t *testing.T) {
	for _, idle := range []string{"10s", "2m"} {
		c := configOf(t, "APP_DB_IDLE_TX_TIMEOUT="+idle)
		want, err := time.ParseDuration(idle)
		require.NoError(t, err)
		require.Greater(t, runnerOptions(c, nil).ResolveTimeout, want)
	}
}
