package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/fault"
	"caskeleton.dev/reqctx"
)

func TestProblem(t *testing.T) {
	ctx := reqctx.WithRequestID(t.Context(), "r-1")
	field := fault.Field{Path: "items", Problem: "is empty", Fix: "order something"}
	cause := errors.New("cause")
	want := httpapi.Problem{
		Type:      "urn:caskeleton:problem:REQUEST_INVALID",
		Title:     "The request is not valid.",
		Status:    422,
		Code:      "REQUEST_INVALID",
		RequestID: "r-1",
		Errors:    []fault.Field{field},
	}
	require.Empty(t, cmp.Diff(want, httpapi.NewProblem(ctx, fmt.Errorf("a: %w", fault.Invalid("orders.Place", field)))))

	want.Status = 400
	require.Empty(t, cmp.Diff(want, httpapi.NewProblem(ctx, fault.Malformed("orders.Place", cause, field))))

	internal := httpapi.Problem{
		Type: "urn:caskeleton:problem:INTERNAL", Title: "Something went wrong on our side.", Status: 500, Code: "INTERNAL", RequestID: "r-1",
	}
	require.Empty(t, cmp.Diff(internal, httpapi.NewProblem(ctx, cause)))
	require.Empty(t, cmp.Diff(internal, httpapi.NewProblem(ctx, nil)))
	require.Empty(t, cmp.Diff(internal, httpapi.NewProblem(ctx, fault.New(fault.Internal, "outbox.Append", fault.Invalid("outbox.Append", field)))),
		"fields of an input that was ours reached the client")
}

func TestRetryAfterRoundsUp(t *testing.T) {
	for after, seconds := range map[time.Duration]string{
		1:                       "1",
		time.Second:             "1",
		1001 * time.Millisecond: "2",
		math.MaxInt64:           "9223372037",
	} {
		rec := httptest.NewRecorder()
		httpapi.WriteProblem(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), &fault.Error{Code: fault.IdempotencyInProgress, After: after}, nil)
		require.Equal(t, seconds, rec.Header().Get("Retry-After"))
		require.Contains(t, rec.Body.String(), `"retry_after":`+seconds+"}")
	}
	rec := httptest.NewRecorder()
	httpapi.WriteProblem(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), fault.DBUnavailable, nil)
	require.NotContains(t, rec.Header(), "Retry-After")
	require.NotContains(t, rec.Body.String(), "retry_after")
}

func TestProblemReplacesTheAnswer(t *testing.T) {
	s := serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) error {
			for _, name := range []string{"Content-Length", "Content-Encoding", "ETag", "Last-Modified", "Location"} {
				w.Header().Set(name, "5")
			}
			w.Header().Set("Cache-Control", "max-age=60")
			return fault.NotFound
		})
	})
	get := s.do(t, "GET", "/", "")
	require.Equal(t, "NOT_FOUND", get.problem(t).Code)
	require.Equal(t, "no-store", get.Header.Get("Cache-Control"))
	for _, name := range []string{"Content-Encoding", "ETag", "Last-Modified", "Location"} {
		require.NotContains(t, get.Header, name)
	}

	head := s.do(t, "HEAD", "/", "", "X-Request-Id", get.Header.Get("X-Request-Id"))
	require.Equal(t, http.StatusNotFound, head.StatusCode)
	require.Empty(t, head.body)
	require.Equal(t, get.ContentLength, head.ContentLength)
	require.Equal(t, "application/problem+json", head.Header.Get("Content-Type"))
}

func TestHeadWritesNoBody(t *testing.T) {
	rec := httptest.NewRecorder() // net/http would hide it
	httpapi.WriteProblem(rec, httptest.NewRequestWithContext(t.Context(), "HEAD", "/", nil), fault.NotFound, nil)
	require.Zero(t, rec.Body.Len())
}

func TestErrorAfterTheResponseBegan(t *testing.T) {
	s := serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) error {
			if _, err := io.WriteString(w, "half an ans"); err != nil {
				return err
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
			return fault.New(fault.DBServerFault, "orders.List", fault.Text("row 3"))
		})
	})
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
	require.NoError(t, err)
	res, err := s.Client().Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a torn answer must not look whole")
	require.NoError(t, res.Body.Close())
	require.Equal(t, "half an ans", string(body))
	s.Close()
	require.Equal(t, "orders.List: DB_SERVER_FAULT: row 3", s.log.lines(t, "request failed")[0]["error"])
	access := s.log.lines(t, "request")[0]
	require.Equal(t, true, access["aborted"])
	require.Equal(t, "DB_SERVER_FAULT", access["code"])
}

func TestCallerWentAway(t *testing.T) {
	entered, left := make(chan struct{}), make(chan error, 1)
	coded := false
	s := serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("GET /", func(_ http.ResponseWriter, r *http.Request) error {
			entered <- struct{}{}
			<-r.Context().Done()
			if coded {
				return fault.New(fault.DBCommitUnknown, "tx.Commit", r.Context().Err())
			}
			return fmt.Errorf("select: %w", r.Context().Err())
		})
	})
	leave := func() {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
		require.NoError(t, err)
		go func() {
			res, err := s.Client().Do(r)
			if err == nil {
				_ = res.Body.Close()
			}
			left <- err
		}()
		<-entered
		cancel()
		require.ErrorIs(t, <-left, context.Canceled)
	}
	leave()
	require.Eventually(t, func() bool { return len(s.log.lines(t, "request")) == 1 }, 10*time.Second, 5*time.Millisecond)
	coded = true
	leave()
	s.Close()

	failures := s.log.lines(t, "request failed")
	require.Len(t, failures, 1, "an abandoned read is no failure; an unknown commit stays one")
	require.Equal(t, "DB_COMMIT_UNKNOWN", failures[0]["code"])
	require.InDelta(t, 499, s.log.lines(t, "request")[0]["status"], 0)
	require.Len(t, s.log.lines(t, "caller went away"), 1)
}

// A caller that shuts only its sending side looks gone, and reads on.
func TestCallerWhoStillListens(t *testing.T) {
	entered := make(chan struct{})
	s := serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("GET /", func(_ http.ResponseWriter, r *http.Request) error {
			close(entered)
			<-r.Context().Done()
			return r.Context().Err()
		})
	})
	conn := dial(t, s, "GET / HTTP/1.1\r\nHost: shop\r\n\r\n")
	<-entered
	require.NoError(t, conn.CloseWrite())
	a := readAnswer(t, conn)
	require.Equal(t, 499, a.StatusCode)
	require.True(t, a.Close)
	require.Empty(t, a.body)
}

func TestWriteProblemWithoutError(t *testing.T) {
	var log logBook
	rec := httptest.NewRecorder()
	httpapi.WriteProblem(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), nil, log.logger())
	require.Equal(t, 500, rec.Code)
	require.Equal(t, "WriteProblem was called without an error", log.lines(t, "request failed")[0]["error"])
}

func TestCancelledByUsIsOurFailure(t *testing.T) {
	s := serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) error { return context.Canceled })
	})
	require.Equal(t, "INTERNAL", s.do(t, "GET", "/", "").problem(t).Code)
}

// faulty is a connection that broke.
type faulty struct{ http.ResponseWriter }

func (faulty) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestFailedWriteIsNoFailureOfOurs(t *testing.T) {
	var log logBook
	mux := httpapi.NewMux(log.logger())
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) error {
		_, err := io.WriteString(w, "hello")
		return err
	})
	mux.ServeHTTP(faulty{httptest.NewRecorder()}, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	require.Empty(t, log.lines(t, "request failed"))
	require.Len(t, log.lines(t, "caller went away"), 1)
}
