package bootstrap

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// A load balancer must be told before the requests in flight have ended, and not once nobody listens any more.
func TestItIsUnreadyWhileItDrains(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	health, err := httpapi.NewHealth(nil, &httpapi.HealthOptions{Logger: log})
	require.NoError(t, err)
	health.SetReady(true)
	p := &process{health: health, log: log}
	ready := func() string {
		w := httptest.NewRecorder()
		p.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		return w.Body.String()
	}
	require.JSONEq(t, `{"status":"ready"}`, ready())

	entered, leave := make(chan struct{}), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	})}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served, stopped := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	answered := make(chan error, 1)
	go func() {
		_, _, err := get(t.Context(), "http://"+ln.Addr().String())
		answered <- err
	}()
	wait(t, entered)
	go func() { stopped <- p.down(t.Context(), server) }()
	require.ErrorIs(t, wait(t, served), http.ErrServerClosed) // Shutdown has begun, and the request is still there
	require.JSONEq(t, `{"status":"unready","reason":"draining"}`, ready())
	close(leave)
	require.NoError(t, wait(t, answered))
	require.NoError(t, wait(t, stopped))
}

func TestThePoolIsClosedInTheEnd(t *testing.T) {
	for name, fails := range map[string]error{"stopped": nil, "never ready": errors.New("no routes")} {
		t.Run(name, func(t *testing.T) {
			var app *App
			r, listening := begin(t, configOf(t, "DATABASE_URL="+pgtest.DSN(t)), Service{Name: "test", Routes: func(a *App) (http.Handler, error) {
				app = a
				return httpapi.NewMux(a.Log), fails
			}})
			if fails == nil {
				wait(t, listening)
				r.cancel()
			}
			require.ErrorIs(t, wait(t, r.result), fails)
			require.ErrorIs(t, app.DB.Ping(t.Context()), fault.DBPoolClosed)
		})
	}
}

// All connections of the pool are at work: new requests wait for one, and the service is as ready as before.
func TestABusyPoolIsReady(t *testing.T) {
	var app *App
	r, listening := begin(t, configOf(t, "DATABASE_URL="+pgtest.DSN(t), "APP_DB_MAX_CONNS=1"), Service{Name: "test", Routes: func(a *App) (http.Handler, error) {
		app = a
		return httpapi.NewMux(a.Log), nil
	}})
	url := wait(t, listening)
	require.NoError(t, app.Runner.InWrite(t.Context(), func(context.Context, *tx.Tx) error {
		require.EqualValues(t, 1, app.DB.Stat().AcquiredConns())
		code, body := status(t, url+"/readyz")
		require.Equal(t, 200, code, body)
		return nil
	}))
	require.NoError(t, r.stop(t))
}
