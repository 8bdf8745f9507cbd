package httpapi_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/tx"
)

// exchange is an answer that must be the same when it is given again.
type exchange struct {
	method string
	status int
	header http.Header
	body   []byte
}

func exchanges() map[string]exchange {
	random := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	return map[string]exchange{
		"created":        {http.MethodPost, 201, http.Header{"Content-Type": {"application/json"}, "Location": {"/things/1"}, "Etag": {`"1"`}}, []byte(`{"n":1}`)},
		"empty":          {http.MethodPost, 200, nil, nil},
		"no content":     {http.MethodDelete, 204, http.Header{"Etag": {`"2"`}}, nil},
		"not modified":   {http.MethodPost, 304, http.Header{"Etag": {`W/"3"`}, "Vary": {"Accept"}}, nil},
		"see other":      {http.MethodPost, 303, http.Header{"Location": {"/things/2"}}, nil},
		"head":           {http.MethodHead, 200, http.Header{"Content-Type": {"text/plain"}}, []byte("never sent")},
		"binary":         {http.MethodPut, 200, http.Header{"Content-Type": {"image/png"}}, []byte{0, '\n', 0xff, '\r', '\n', 0xfe, 0}},
		"no type":        {http.MethodPatch, 200, nil, []byte("<html>guessed</html>")},
		"type kept back": {http.MethodPost, 200, http.Header{"Content-Type": nil}, []byte("<html>not guessed</html>")},
		"compressed":     {http.MethodPost, 200, http.Header{"Content-Encoding": {"br"}, "Content-Type": {"text/plain"}}, []byte{11, 2, 128, 'x', 3}},
		"two links":      {http.MethodPost, 200, http.Header{"Link": {`</a>; rel="a"`, `</b>; rel="b"`}}, []byte("x")},
		"8 KiB":          {http.MethodPost, 200, http.Header{"Content-Type": {"text/plain"}}, random[:8<<10]},
		"1 MiB":          {http.MethodPost, 200, http.Header{"Content-Type": {"application/octet-stream"}}, random},
		"own media type": {http.MethodPost, 200, http.Header{"Content-Type": {"application/vnd.a+json; v=1"}, "Content-Language": {"ko"}}, []byte(`"한"`)},
	}
}

func (e exchange) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	maps.Copy(w.Header(), e.header)
	w.WriteHeader(e.status)
	for rest := e.body; len(rest) > 0 && e.status != 204; { // in pieces, as handlers do
		n := min(len(rest), 1000)
		_, _ = w.Write(rest[:n])
		rest = rest[n:]
	}
}

func (e exchange) transactional(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) {
	return &httpapi.Response{Status: e.status, Header: e.header, Body: e.body}, nil
}

// prove gets the answer twice, and compares all that is of the answer and not of the exchange.
func (e exchange) prove(t *testing.T, h http.Handler) {
	t.Helper()
	s := serve(t, func(m *httpapi.Mux) { m.Handle("/things/{id}", h) })
	send := func() answer {
		return s.do(t, e.method, "/things/1", `{}`, "Idempotency-Key", "k", "Content-Type", "application/json", "Accept-Encoding", "identity")
	}
	first := send()
	again := send()
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	for _, a := range []answer{first, again} {
		require.Equal(t, e.status, a.StatusCode)
		if e.method != http.MethodHead {
			require.True(t, bytes.Equal(e.body, []byte(a.body)), "%d bytes, not %d", len(a.body), len(e.body))
		}
		for name, values := range e.header {
			require.Equal(t, values, a.Header[name], name)
		}
		for _, name := range []string{"Date", "X-Request-Id", "Idempotent-Replayed"} {
			a.Header.Del(name)
		}
	}
	require.Equal(t, first.Header, again.Header)
	require.Equal(t, first.ContentLength, again.ContentLength)
}

func TestAnswersAreReplayedByteForByte(t *testing.T) {
	f := newFixture(t)
	for name, e := range exchanges() {
		t.Run("external "+name, func(t *testing.T) {
			e.prove(t, httpapi.External(f.guard, httpapi.Policy{Route: "external " + name})(e))
		})
		t.Run("transactional "+name, func(t *testing.T) {
			e.prove(t, httpapi.Transactional(f.guard, httpapi.Policy{Route: "transactional " + name}, e.transactional))
		})
	}
}

// A handler may answer HEAD with the length of a body that it does not make.
func TestTheLengthThatHeadDeclaresIsReplayed(t *testing.T) {
	f := newFixture(t)
	s, _ := f.guarded(t, httpapi.Policy{}, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "12345") })
	for _, replayed := range []string{"", "true"} {
		res := s.do(t, http.MethodHead, "/things/1", "", "Idempotency-Key", "k")
		require.Equal(t, replayed, res.Header.Get("Idempotent-Replayed"))
		require.Equal(t, int64(12345), res.ContentLength)
	}
}

// What net/http would not send is not stored either.
func TestAnAnswerIsKeptAsNetHTTPSendsIt(t *testing.T) {
	f := newFixture(t)
	s, _ := f.guarded(t, httpapi.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", `"1"`)
		w.WriteHeader(http.StatusEarlyHints) // interim
		w.WriteHeader(http.StatusNoContent)
		w.WriteHeader(http.StatusTeapot) // superfluous
		w.Header().Set("Etag", `"2"`)    // too late
		n, err := io.WriteString(w, "a body")
		assert.Zero(t, n)
		assert.ErrorIs(t, err, http.ErrBodyNotAllowed)
	})
	for _, replayed := range []string{"", "true"} {
		res := post(t, s, "k", `{}`)
		require.Equal(t, http.StatusNoContent, res.StatusCode)
		require.Equal(t, replayed, res.Header.Get("Idempotent-Replayed"))
		require.Equal(t, `"1"`, res.Header.Get("Etag"))
	}
}

func TestAResponseThatCannotBeKeptWholeIsRefused(t *testing.T) {
	half := says(http.StatusOK, "half")
	for name, h := range map[string]http.HandlerFunc{
		"flushed": func(w http.ResponseWriter, r *http.Request) {
			half(w, r)
			flusher, ok := w.(http.Flusher)
			assert.True(t, ok)
			flusher.Flush()
			half(w, r)
		},
		"flushed by a controller": func(w http.ResponseWriter, r *http.Request) {
			half(w, r)
			assert.ErrorIs(t, http.NewResponseController(w).Flush(), http.ErrNotSupported)
		},
		"hijacked": func(w http.ResponseWriter, _ *http.Request) {
			h, ok := w.(http.Hijacker)
			assert.True(t, ok)
			_, _, err := h.Hijack()
			assert.ErrorIs(t, err, http.ErrNotSupported)
		},
		"hijacked by a controller": func(w http.ResponseWriter, _ *http.Request) {
			_, _, err := http.NewResponseController(w).Hijack()
			assert.ErrorIs(t, err, http.ErrNotSupported)
		},
		"upgraded": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusSwitchingProtocols) },
		"over the limit": func(w http.ResponseWriter, r *http.Request) {
			says(http.StatusOK, strings.Repeat("x", 100))(w, r)
			n, err := io.WriteString(w, "x")
			assert.Zero(t, n)
			assert.ErrorContains(t, err, "Policy.MaxResponse")
		},
		"shorter than it says": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			half(w, r)
		},
		"declared trailers": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "Digest")
			half(w, r)
		},
		"trailers": func(w http.ResponseWriter, r *http.Request) {
			half(w, r)
			w.Header().Set(http.TrailerPrefix+"Digest", "x")
		},
		"no status of HTTP": says(600, ""),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s, runs := f.guarded(t, httpapi.Policy{MaxResponse: 100}, h)
			res := post(t, s, "k", `{}`)
			require.Equal(t, http.StatusInternalServerError, res.StatusCode)
			require.Equal(t, "INTERNAL", res.problem(t).Code)
			require.NotContains(t, res.body, "half")
			require.Equal(t, []string{"ABANDONED"}, f.states(t), "nobody knows what took effect")
			require.Equal(t, "IDEMPOTENCY_ABANDONED", post(t, s, "k", `{}`).problem(t).Code)
			require.Equal(t, 1, runs())
		})
	}
}

// Within Wrap alone, a handler may still take its connection over.
func TestWrapLetsAHandlerHijack(t *testing.T) {
	s := serve(t, func(m *httpapi.Mux) {
		m.Handle("GET /raw", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			h, ok := w.(http.Hijacker)
			assert.True(t, ok)
			conn, rw, err := h.Hijack()
			assert.NoError(t, err)
			defer func() { _ = conn.Close() }()
			_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
			_ = rw.Flush()
		}))
	})
	require.Equal(t, "raw", s.do(t, http.MethodGet, "/raw", "").body)
}
