package bootstrap

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres/embedded"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/bootstrap/config"
)

// patience bounds every wait; nothing is asserted about how long anything takes.
const patience = time.Minute

// configOf loads a configuration as the service would, from variables.
func configOf(t *testing.T, environ ...string) *config.Config {
	t.Helper()
	c, err := config.Load(config.Source{Environ: append([]string{"APP_HTTP_ADDR=127.0.0.1:0", "APP_DATA_DIR=" + t.TempDir()}, environ...)})
	require.NoError(t, err)
	return c
}

// run is a service under test.
type run struct {
	url    string
	cancel context.CancelFunc
	result chan error
}

// begin starts Run. Its URL is known once it is ready, unless the configuration names a port.
func begin(t *testing.T, c *config.Config, s Service) (*run, <-chan string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &run{url: "http://" + c.HTTP.Addr, cancel: cancel, result: make(chan error, 1)}
	out, w := io.Pipe()
	go func() {
		r.result <- Run(ctx, c, s, w, slog.New(slog.DiscardHandler))
		_ = w.Close()
	}()
	listening := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
				listening <- url
			}
		}
	}()
	return r, listening
}

func (r *run) stop(t *testing.T) error {
	t.Helper()
	r.cancel()
	select {
	case err := <-r.result:
		return err
	case <-time.After(patience):
		require.FailNow(t, "Run did not return")
		return nil
	}
}

func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		require.FailNow(t, "waited in vain")
		panic("unreachable")
	}
}

// get returns the status and body of a GET.
func get(ctx context.Context, url string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

// status is get in a test's own goroutine; its status is 0 where nobody answers.
func status(t *testing.T, url string) (int, string) {
	t.Helper()
	code, body, _ := get(t.Context(), url)
	return code, body
}

// becomes waits for a status.
func becomes(t *testing.T, url string, want int) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, _ := status(t, url)
		return got == want
	}, patience, 5*time.Millisecond)
}

func routes(handlers map[string]httpapi.HandlerFunc) func(*App) (http.Handler, error) {
	return func(a *App) (http.Handler, error) {
		mux := httpapi.NewMux(a.Log)
		for pattern, h := range handlers {
			mux.HandleFunc(pattern, h)
		}
		return mux, nil
	}
}

func TestARequestInFlightIsFinishedBeforeTheEnd(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	r, listening := begin(t, configOf(t, "DATABASE_URL="+pgtest.DSN(t)), Service{Name: "test", Routes: routes(map[string]httpapi.HandlerFunc{
		"GET /slow": func(w http.ResponseWriter, _ *http.Request) error {
			close(entered)
			<-leave
			_, err := fmt.Fprint(w, "done")
			return err
		},
	})})
	url := wait(t, listening)
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/nothing": 404} {
		got, _ := status(t, url+path)
		require.Equal(t, want, got, path)
	}

	answer := make(chan string, 1)
	go func() {
		code, body, err := get(t.Context(), url+"/slow")
		answer <- fmt.Sprint(code, " ", body, " ", err)
	}()
	wait(t, entered)
	r.cancel()
	becomes(t, url+"/readyz", 0) // the listener is closed
	select {
	case err := <-r.result:
		require.FailNow(t, "it ended under a request in flight", "%v", err)
	default:
	}
	close(leave)
	require.Equal(t, "200 done <nil>", wait(t, answer))
	require.NoError(t, wait(t, r.result))
}

func TestProbesAreRoutes(t *testing.T) {
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	health, err := httpapi.NewHealth(nil, &httpapi.HealthOptions{Logger: log})
	require.NoError(t, err)
	h := httpapi.Wrap((&process{health: health, log: log}).handler(), log)
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		require.Equal(t, want, w.Code, path)
		require.Contains(t, logged.String(), `route="GET `+path+`"`)

		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, path)
		require.Equal(t, "GET, HEAD", w.Header().Get("Allow"), path)
		require.Equal(t, httpapi.ProblemType, w.Header().Get("Content-Type"), path)
	}
}

func TestItIsAliveAndNotReadyUntilPostgresAnswers(t *testing.T) {
	server := pgtest.PrivateServer(t, nil)
	dsn := server.DSN()
	require.NoError(t, server.Stop(t.Context()))

	c := configOf(t, "DATABASE_URL="+dsn, "APP_HTTP_ADDR="+freeAddr(t))
	r, listening := begin(t, c, Service{Name: "test", Routes: routes(nil)})
	becomes(t, r.url+"/livez", 200)
	code, body := status(t, r.url+"/readyz")
	require.Equal(t, 503, code)
	require.JSONEq(t, `{"status":"unready","reason":"starting"}`, body)
	code, body = status(t, r.url+"/anything")
	require.Equal(t, 503, code)
	var p httpapi.Problem
	require.NoError(t, json.Unmarshal([]byte(body), &p))
	require.Equal(t, "DB_UNAVAILABLE", p.Code)

	again, err := embedded.Start(t.Context(), embedded.Options{DataDir: server.DataDir(), Port: server.Port(), BinDir: server.BinDir()})
	require.NoError(t, err)
	wait(t, listening)
	becomes(t, r.url+"/readyz", 200)

	require.NoError(t, again.Stop(t.Context()))
	becomes(t, r.url+"/readyz", 503)
	code, _ = status(t, r.url+"/livez")
	require.Equal(t, 200, code)
	_, err = embedded.Start(t.Context(), embedded.Options{DataDir: server.DataDir(), Port: server.Port(), BinDir: server.BinDir()})
	require.NoError(t, err)
	becomes(t, r.url+"/readyz", 200) // without a restart of ours
	require.NoError(t, r.stop(t))
}

func TestInProdSomebodyElseMigrates(t *testing.T) {
	dsn := pgtest.DSN(t)
	c := configOf(t, "APP_PROFILE=prod", "DATABASE_URL="+dsn, "APP_IDEMPOTENCY_KEY_1=0123456789abcdef0123456789abcdef")
	r, listening := begin(t, c, Service{Name: "test", Routes: routes(nil)})
	url := wait(t, listening)
	code, body := status(t, url+"/readyz")
	require.Equal(t, 503, code)
	require.JSONEq(t, `{"status":"unready","reason":"failing","failing":["database"]}`, body)

	m, err := migrations.New(dsn, migrations.All(), nil)
	require.NoError(t, err)
	_, err = m.Up(t.Context())
	require.NoError(t, err)
	becomes(t, url+"/readyz", 200)
	require.NoError(t, r.stop(t))
}

func TestAReplicaThatIsNotReadFromIsReported(t *testing.T) {
	c := configOf(t, "DATABASE_URL="+pgtest.DSN(t), "APP_READ_DSN=postgres://nobody@"+freeAddr(t)+"/none")
	r, listening := begin(t, c, Service{Name: "test", Routes: routes(nil)})
	code, body := status(t, wait(t, listening)+"/readyz")
	require.Equal(t, 200, code, "the primary serves its reads")
	require.JSONEq(t, `{"status":"ready","degraded":["replica"]}`, body)
	require.NoError(t, r.stop(t))
}

func TestToldToStopWhileItWaitsItStops(t *testing.T) {
	c := configOf(t, "DATABASE_URL=postgres://nobody@"+freeAddr(t)+"/none", "APP_HTTP_ADDR="+freeAddr(t))
	r, _ := begin(t, c, Service{Name: "test", Routes: routes(nil)})
	becomes(t, r.url+"/livez", 200)
	require.NoError(t, r.stop(t))
}

func TestWhatCannotGetBetterEndsTheStart(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	dsn := pgtest.DSN(t)
	for name, c := range map[string]struct {
		config *config.Config
		routes func(*App) (http.Handler, error)
		says   string
	}{
		"port in use":      {configOf(t, "DATABASE_URL="+dsn, "APP_HTTP_ADDR="+taken.Addr().String()), routes(nil), "APP_HTTP_ADDR"},
		"unknown database": {configOf(t, "DATABASE_URL="+elsewhere(t, dsn)), routes(nil), "DB_ACCESS_DENIED"},
		"routes that fail": {configOf(t, "DATABASE_URL="+dsn), func(*App) (http.Handler, error) { return nil, fmt.Errorf("no routes") }, "no routes"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := begin(t, c.config, Service{Name: "test", Routes: c.routes})
			err := wait(t, r.result)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "canary")
		})
	}
}

// elsewhere is dsn with the name of a database that does not exist.
func elsewhere(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	u.Path = "/canary"
	return u.String()
}

// freeAddr returns an address that nobody listens on at the moment.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	return ln.Addr().String()
}
