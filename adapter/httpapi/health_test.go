package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
)

func newHealth(t *testing.T, o *httpapi.HealthOptions, checks ...httpapi.Check) *httpapi.Health {
	t.Helper()
	h, err := httpapi.NewHealth(checks, o)
	require.NoError(t, err)
	return h
}

func probe(t *testing.T, h http.HandlerFunc) (status int, body string) {
	t.Helper()
	rec := httptest.NewRecorder()
	h(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
	require.Equal(t, "no-store", rec.Header().Get("Cache-Control"))
	return rec.Code, rec.Body.String()
}

func TestReadinessThroughALife(t *testing.T) {
	down := errors.New("dial tcp 10.1.2.3:5432: connection refused")
	var database atomic.Pointer[error]
	var asked atomic.Int32
	var log logBook
	h := newHealth(t, &httpapi.HealthOptions{Logger: log.logger()},
		httpapi.Check{Name: "schema", Probe: func(context.Context) error { asked.Add(1); return nil }},
		httpapi.Check{Name: "database", Probe: func(context.Context) error {
			if err := database.Load(); err != nil {
				return *err
			}
			return nil
		}},
	)
	is := func(status int, body string) {
		t.Helper()
		gotStatus, gotBody := probe(t, h.Readyz)
		require.Equal(t, status, gotStatus)
		require.JSONEq(t, body, gotBody)
		liveStatus, liveBody := probe(t, h.Livez)
		require.Equal(t, 200, liveStatus, "liveness depends on something")
		require.JSONEq(t, `{"status":"live"}`, liveBody)
	}
	is(503, `{"status":"unready","reason":"starting"}`)
	require.Zero(t, asked.Load())
	h.SetReady(true)
	is(200, `{"status":"ready"}`)
	database.Store(&down)
	is(503, `{"status":"unready","reason":"failing","failing":["database"]}`)
	is(503, `{"status":"unready","reason":"failing","failing":["database"]}`)
	failing := log.lines(t, "health check failing")
	require.Len(t, failing, 1, "only a change is news")
	require.Equal(t, "database", failing[0]["check"])
	require.Equal(t, "*errors.errorString", failing[0]["error"], "its text names a host")
	database.Store(nil)
	is(200, `{"status":"ready"}`)
	require.Len(t, log.lines(t, "health check passing again"), 1)
	h.SetReady(false)
	is(503, `{"status":"unready","reason":"starting"}`)
	h.Drain()
	h.SetReady(true)
	is(503, `{"status":"unready","reason":"draining"}`)
}

func TestHangingCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBook
		release := make(chan struct{})
		var runs atomic.Int32
		h := newHealth(t, &httpapi.HealthOptions{Timeout: time.Second, Logger: log.logger()},
			httpapi.Check{Name: "stuck", Probe: func(context.Context) error { runs.Add(1); <-release; return nil }},
			httpapi.Check{Name: "heedful", Probe: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
			httpapi.Check{Name: "fine", Probe: func(context.Context) error { return nil }},
		)
		h.SetReady(true)
		start := time.Now()
		for range 3 {
			status, body := probe(t, h.Readyz)
			require.Equal(t, 503, status)
			require.JSONEq(t, `{"status":"unready","reason":"failing","failing":["stuck","heedful"]}`, body)
		}
		require.Equal(t, 3*time.Second, time.Since(start), "checks did not run side by side, or beyond their bound") // the bubble's clock
		require.EqualValues(t, 1, runs.Load(), "runs piled up on a dependency that hangs")
		close(release)
		synctest.Wait()
		require.Len(t, log.lines(t, "health check failing"), 2)
		require.Empty(t, log.lines(t, "health check passing again"), "an answer that came too late is none")
	})
}

func TestCheckOutlivesWhoAskedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var cancelled error
		h := newHealth(t, nil, httpapi.Check{Name: "slow", Probe: func(ctx context.Context) error {
			<-release
			cancelled = ctx.Err()
			return cancelled
		}})
		h.SetReady(true)
		ctx, leave := context.WithCancel(t.Context())
		first, second := httptest.NewRecorder(), httptest.NewRecorder()
		go h.Readyz(first, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
		synctest.Wait()
		go h.Readyz(second, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
		leave()
		synctest.Wait()
		close(release)
		synctest.Wait()
		require.NoError(t, cancelled)
		require.Equal(t, 200, second.Code)
	})
}

func TestPanickingCheck(t *testing.T) {
	var log logBook
	h := newHealth(t, &httpapi.HealthOptions{Logger: log.logger()}, httpapi.Check{Name: "wild", Probe: func(context.Context) error { panic("canary") }})
	h.SetReady(true)
	status, body := probe(t, h.Readyz)
	require.Equal(t, 503, status)
	require.JSONEq(t, `{"status":"unready","reason":"failing","failing":["wild"]}`, body)
	require.NotContains(t, log.String(), "canary")
}

func TestHealthOnTheWire(t *testing.T) {
	h := newHealth(t, nil)
	s := serve(t, func(m *httpapi.Mux) {
		m.Handle("GET /livez", http.HandlerFunc(h.Livez))
		m.Handle("GET /readyz", http.HandlerFunc(h.Readyz))
	})
	head := s.do(t, "HEAD", "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, head.StatusCode)
	require.Empty(t, head.body)
	require.Equal(t, http.StatusOK, s.do(t, "HEAD", "/livez", "").StatusCode)
	require.Equal(t, http.StatusMethodNotAllowed, s.do(t, "POST", "/livez", "").StatusCode)
	s.Close()
	require.Equal(t, "DEBUG", s.log.lines(t, "request")[0]["level"], "probes drown the log")
}

func TestHealthRefusesBadChecks(t *testing.T) {
	fine := httpapi.Check{Name: "database", Probe: func(context.Context) error { return nil }}
	for _, checks := range [][]httpapi.Check{
		{{Name: "", Probe: fine.Probe}},
		{{Name: "database"}},
		{fine, fine},
	} {
		_, err := httpapi.NewHealth(checks, nil)
		require.ErrorContains(t, err, "needs a name of its own and a Probe")
	}
	_, err := httpapi.NewHealth(nil, &httpapi.HealthOptions{Timeout: -1})
	require.ErrorContains(t, err, "HealthOptions.Timeout")
}

func TestWhatOnlyDegradesIsReported(t *testing.T) {
	down := func(context.Context) error { return errors.New("it lags") }
	h := newHealth(t, &httpapi.HealthOptions{Logger: new(logBook).logger()}, httpapi.Check{Name: "replica", Probe: down, Degrades: true})
	h.SetReady(true)
	status, body := probe(t, h.Readyz)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"status":"ready","degraded":["replica"]}`, body)

	h = newHealth(t, &httpapi.HealthOptions{Logger: new(logBook).logger()}, httpapi.Check{Name: "replica", Probe: down, Degrades: true}, httpapi.Check{Name: "database", Probe: down})
	h.SetReady(true)
	status, body = probe(t, h.Readyz)
	require.Equal(t, 503, status)
	require.JSONEq(t, `{"status":"unready","reason":"failing","failing":["database"],"degraded":["replica"]}`, body)
}
