package httpapi_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/fault"
	"caskeleton.dev/reqctx"
)

func TestRequestID(t *testing.T) {
	s := serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) error {
			_, err := io.WriteString(w, reqctx.RequestID(r.Context()))
			return err
		})
	})
	for _, id := range []string{"a", "A-1_b.2", strings.Repeat("x", 128)} {
		a := s.do(t, "GET", "/", "", "X-Request-Id", id)
		require.Equal(t, id, a.body)
		require.Equal(t, id, a.Header.Get("X-Request-Id"))
	}
	seen := map[string]bool{}
	for _, header := range [][]string{
		{},
		{"X-Request-Id", ""},
		{"X-Request-Id", strings.Repeat("x", 129)},
		{"X-Request-Id", "a b"},
		{"X-Request-Id", "a/b"},
		{"X-Request-Id", "é"},
		{"X-Request-Id", "a", "X-Request-Id", "b"},
	} {
		a := s.do(t, "GET", "/", "", header...)
		require.Regexp(t, `^[A-Za-z0-9._-]{20,128}$`, a.body)
		require.Equal(t, a.body, a.Header.Get("X-Request-Id"))
		require.NotContains(t, header, a.body)
		require.False(t, seen[a.body], "an id was given twice")
		seen[a.body] = true
	}
}

func TestSecurityHeaders(t *testing.T) {
	s := serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) error { return nil })
		m.HandleFunc("GET /page", func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Security-Policy", "default-src 'self'")
			return nil
		})
	})
	a := s.do(t, "GET", "/", "")
	require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
	require.Equal(t, "default-src 'none'; frame-ancestors 'none'", a.Header.Get("Content-Security-Policy"))
	require.Equal(t, "default-src 'self'", s.do(t, "GET", "/page", "").Header.Get("Content-Security-Policy"))
}

func TestAccessLog(t *testing.T) {
	s := serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) error {
			if r.PathValue("id") == "0" {
				return fault.NotFound
			}
			if _, err := io.Copy(w, r.Body); err != nil {
				return err
			}
			return nil
		})
		m.HandleFunc("GET /silent", func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusEarlyHints)
			return nil
		})
	})
	s.do(t, "POST", "/orders/7?q=1", "hello", "X-Request-Id", "r-1")
	s.do(t, "POST", "/orders/0", "", "X-Request-Id", "r-2")
	s.do(t, "GET", "/silent", "", "X-Request-Id", "r-3")
	s.do(t, "BREW", "/nowhere", "", "X-Request-Id", "r-4")
	s.Close()

	lines := s.log.lines(t, "request")
	for i := range lines {
		require.Contains(t, lines[i], "duration")
		require.Contains(t, lines[i], "time")
		delete(lines[i], "duration")
		delete(lines[i], "time")
		delete(lines[i], "msg")
		if lines[i]["code"] != nil {
			require.Positive(t, lines[i]["bytes"])
			delete(lines[i], "bytes")
		}
	}
	require.Equal(t, []map[string]any{
		{"level": "INFO", "method": "POST", "route": "POST /orders/{id}", "status": 200.0, "bytes": 5.0, "request_id": "r-1"},
		{"level": "INFO", "method": "POST", "route": "POST /orders/{id}", "status": 404.0, "request_id": "r-2", "code": "NOT_FOUND"},
		{"level": "INFO", "method": "GET", "route": "GET /silent", "status": 200.0, "bytes": 0.0, "request_id": "r-3"},
		{"level": "INFO", "method": "OTHER", "route": "", "status": 404.0, "request_id": "r-4", "code": "ROUTE_NOT_FOUND"},
	}, lines)
}

func TestErrorLog(t *testing.T) {
	s := serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("GET /ours", func(http.ResponseWriter, *http.Request) error {
			return fault.New(fault.DBServerFault, "postgres.Exec", fault.Text("SQLSTATE 53100"))
		})
		m.HandleFunc("GET /wrapped", func(http.ResponseWriter, *http.Request) error {
			return fmt.Errorf("place: %w", fault.New(fault.DBCheckViolation, "postgres.Exec", fault.Text("SQLSTATE 23514")))
		})
	})
	s.do(t, "GET", "/ours", "", "X-Request-Id", "r-1")
	s.do(t, "GET", "/wrapped", "", "X-Request-Id", "r-2")
	s.Close()
	lines := s.log.lines(t, "request failed")
	for i := range lines {
		delete(lines[i], "time")
		delete(lines[i], "msg")
	}
	require.Equal(t, []map[string]any{
		{"level": "ERROR", "code": "DB_SERVER_FAULT", "status": 500.0, "request_id": "r-1", "error": "postgres.Exec: DB_SERVER_FAULT: SQLSTATE 53100", "hint": "PostgreSQL itself failed: disk, memory, configuration or corruption. Read the server's log at once."},
		{"level": "INFO", "code": "DB_CHECK_VIOLATION", "status": 422.0, "request_id": "r-2", "error": "postgres.Exec: DB_CHECK_VIOLATION: SQLSTATE 23514"},
	}, lines)
}

func TestPanics(t *testing.T) {
	s := serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("GET /early", func(http.ResponseWriter, *http.Request) error { panic(canary) })
		m.HandleFunc("GET /runtime", func(_ http.ResponseWriter, r *http.Request) error {
			_ = make([]int, 2)[len(r.URL.Path)]
			return nil
		})
		m.HandleFunc("POST /late", func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusOK)
			panic(errors.New(canary))
		})
		m.HandleFunc("POST /abort", func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) })
	})
	require.Equal(t, "INTERNAL", s.do(t, "GET", "/early", "").problem(t).Code)
	require.Equal(t, "INTERNAL", s.do(t, "GET", "/runtime", "").problem(t).Code)
	for _, path := range []string{"/late", "/abort"} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+path, nil) // the client would try a GET again by itself
		require.NoError(t, err)
		res, err := s.Client().Do(r)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			require.NoError(t, res.Body.Close())
		}
		require.Error(t, err, path)
	}
	s.Close()

	lines := s.log.lines(t, "handler panicked")
	require.Len(t, lines, 3, "an abort is no panic")
	require.Equal(t, "string", lines[0]["panic_type"])
	require.Equal(t, "GET /early", lines[0]["route"])
	require.Contains(t, lines[0]["stack"], "middleware_test.go")
	require.Equal(t, "runtime error: index out of range [8] with length 2", lines[1]["error"])
	require.Equal(t, "*errors.errorString", lines[2]["panic_type"])
	require.NotContains(t, s.log.String(), canary)

	access := s.log.lines(t, "request")
	require.Len(t, access, 4)
	require.Equal(t, "INTERNAL", access[0]["code"])
	require.NotContains(t, access[0], "aborted")
	require.Equal(t, true, access[2]["aborted"])
	require.Equal(t, true, access[3]["aborted"])
}

func TestResponseControllerReachesTheConnection(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) error {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				return err
			}
			f, ok := w.(http.Flusher)
			if !ok {
				return errors.New("no flusher")
			}
			f.Flush()
			<-release
			return nil
		})
	})
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
	require.NoError(t, err)
	res, err := s.Client().Do(r) // returns only once the header was flushed
	require.NoError(t, err)
	close(release)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
}

func TestNilLogger(t *testing.T) {
	mux := httpapi.NewMux(nil)
	mux.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) error { panic("boom") })
	rec := httptest.NewRecorder()
	httpapi.Wrap(mux, nil).ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	require.Equal(t, http.StatusInternalServerError, rec.Code)
}
