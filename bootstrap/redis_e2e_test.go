//go:build e2e

package bootstrap

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/redistest"
)

func TestJobsOfSeveralInstancesWithRedis(t *testing.T) {
	several(t, "APP_MULTI_INSTANCE_ENABLED=true", "REDIS_URL=redis://"+redistest.Start(t).Addr())
}

func TestARedisThatRefusesUsEndsTheStart(t *testing.T) {
	server := redistest.Start(t)
	server.Do("CONFIG", "SET", "requirepass", "secret")
	c := configOf(t, "APP_MULTI_INSTANCE_ENABLED=true", "REDIS_URL=redis://:canary@"+server.Addr())
	_, err := openRedis(t.Context(), c.Redis.URL, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "WRONGPASS")
	require.NotContains(t, err.Error(), "canary")
}
