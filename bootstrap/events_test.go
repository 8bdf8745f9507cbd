package bootstrap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres/pgtest"
)

func withEvents() Service {
	return Service{Name: "test", Events: &Events{}, Routes: routes(map[string]httpapi.HandlerFunc{})}
}

// TestAStreamThatMayLoseEventsEndsTheStart: the relay would pause for ever behind a service that says it is ready.
func TestAStreamThatMayLoseEventsEndsTheStart(t *testing.T) {
	dir, dsn := t.TempDir(), pgtest.DSN(t)
	r, listening := begin(t, configOf(t, "DATABASE_URL="+dsn, "APP_DATA_DIR="+dir), withEvents())
	wait(t, listening)
	require.NoError(t, r.stop(t))
	// An event may now be sent again for longer than the stream recognises it.
	r, _ = begin(t, configOf(t, "DATABASE_URL="+dsn, "APP_DATA_DIR="+dir, "APP_OUTBOX_LEASE=5m"), withEvents())
	var refused *natsbroker.NotDurableError
	require.ErrorAs(t, wait(t, r.result), &refused)
}

func TestABrokerThatIsDownIsWaitedFor(t *testing.T) {
	r, listening := begin(t, configOf(t, "DATABASE_URL="+pgtest.DSN(t), "NATS_URL=nats://127.0.0.1:1"), withEvents())
	code, _ := status(t, wait(t, listening)+"/readyz")
	require.Equal(t, 200, code)
	require.NoError(t, r.stop(t))
}
