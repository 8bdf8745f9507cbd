package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"caskeleton.dev/adapter/httpapi"
)

// net/http lingers for 500 ms on a connection that it closes with data unread, longer than goleak waits.
func TestMain(m *testing.M) {
	if at := os.Getenv(childVariable); at != "" {
		panic(runChild(context.Background(), at, os.Stdout))
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// logBook is a log that a test can read while a server writes it.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *logBook) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lines returns what was logged under a message.
func (b *logBook) lines(t *testing.T, msg string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(b.String()) {
		var attrs map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &attrs))
		if attrs["msg"] == msg {
			found = append(found, attrs)
		}
	}
	return found
}

// service is a mux behind Wrap on a real socket.
type service struct {
	*httptest.Server
	log *logBook
}

func serve(t *testing.T, routes func(m *httpapi.Mux), tune ...func(*http.Server)) *service {
	t.Helper()
	s := &service{log: &logBook{}}
	mux := httpapi.NewMux(s.log.logger())
	routes(mux)
	s.Server = httptest.NewUnstartedServer(httpapi.Wrap(mux, s.log.logger()))
	s.Config.ErrorLog = slog.NewLogLogger(s.log.logger().Handler(), slog.LevelWarn)
	for _, f := range tune {
		f(s.Config)
	}
	s.Start()
	t.Cleanup(s.Close)
	s.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
}

// answer is a response whose body was read.
type answer struct {
	*http.Response
	body string
}

func (a answer) problem(t *testing.T) httpapi.Problem {
	t.Helper()
	require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"), a.body)
	var p httpapi.Problem
	require.NoError(t, json.Unmarshal([]byte(a.body), &p))
	return p
}

// do sends a request with headers given as name, value, name, value.
func (s *service) do(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	for pair := range slices.Chunk(header, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	res, err := s.Client().Do(r)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return answer{res, string(b)}
}
