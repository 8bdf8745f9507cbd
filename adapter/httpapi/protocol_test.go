package httpapi_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
)

// The protocol is no part of the request: what was answered over one is answered over the other.
func TestARequestIsTheSameOverHTTP2(t *testing.T) {
	f := newFixture(t)
	big := strings.Repeat("x", 100_000)
	s, runs := f.guarded(t, httpapi.Policy{MaxBody: 1000}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/things/1")
		w.Header().Set("X-Proto", r.Proto)
		says(http.StatusCreated, big)(w, r)
	})
	h2 := httptest.NewUnstartedServer(s.Config.Handler)
	h2.EnableHTTP2 = true
	h2.StartTLS()
	t.Cleanup(h2.Close)
	over2 := &service{Server: h2, log: s.log}

	first := post(t, over2, "k", `{}`)
	require.Equal(t, 2, first.ProtoMajor)
	require.Equal(t, "HTTP/2.0", first.Header.Get("X-Proto"))
	require.Equal(t, big, first.body)
	for proto, s := range map[int]*service{1: s, 2: over2} {
		again := post(t, s, "k", `{}`)
		require.Equal(t, proto, again.ProtoMajor)
		require.Equal(t, http.StatusCreated, again.StatusCode)
		require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
		require.Equal(t, "/things/1", again.Header.Get("Location"))
		require.Equal(t, big, again.body)
		require.Equal(t, int64(len(big)), again.ContentLength)
		require.Equal(t, "IDEMPOTENCY_KEY_REUSED", post(t, s, "k", `{"a":1}`).problem(t).Code)
		require.Equal(t, "IDEMPOTENCY_KEY_INVALID", post(t, s, "a", `{}`, "Idempotency-Key", "b").problem(t).Code, "two fields")
		require.Equal(t, "BODY_TOO_LARGE", post(t, s, "other", strings.Repeat("x", 1001)).problem(t).Code)
	}
	require.Equal(t, 1, runs())

	// Of no announced length, and with trailers.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h2.URL+"/things/1", struct{ io.Reader }{strings.NewReader(`{}`)})
	require.NoError(t, err)
	req.Header.Set("Idempotency-Key", "k")
	req.Header.Set("Content-Type", "application/json")
	req.Trailer = http.Header{"X-Digest": {"x"}}
	res, err := h2.Client().Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(t, "true", res.Header.Get("Idempotent-Replayed"))
}

// A client that asks first sends no body for a key that is none, nor one that is too large.
func TestABodyIsNotAskedForInVain(t *testing.T) {
	f := newFixture(t)
	s, runs := f.guarded(t, httpapi.Policy{MaxBody: 10}, says(http.StatusCreated, "made"))
	for name, c := range map[string]struct {
		headers, status string
	}{
		"no key":    {"Content-Length: 2\r\n", "400"},
		"broken":    {"Idempotency-Key: a b\r\nContent-Length: 2\r\n", "400"},
		"too large": {"Idempotency-Key: k\r\nContent-Length: 11\r\n", "413"},
		"asked for": {"Idempotency-Key: k\r\nContent-Length: 2\r\n", "100"},
		"a repeat":  {"Idempotency-Key: k\r\nContent-Length: 2\r\n", "100"}, // which the body shows it to be
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, rawHead+c.headers+"Expect: 100-continue\r\n\r\n")
		require.NoError(t, err)
		from := bufio.NewReader(conn)
		line, err := from.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "HTTP/1.1 "+c.status, name)
		if c.status == "100" {
			_, err = io.WriteString(conn, "{}")
			require.NoError(t, err)
			_, err = from.ReadString('\n')
			require.NoError(t, err)
			res, err := http.ReadResponse(from, nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusCreated, res.StatusCode, name)
			require.NoError(t, res.Body.Close())
		}
	}
	require.Equal(t, 1, runs())
	require.Equal(t, []string{"COMPLETED"}, f.states(t))
}

// A method is a part of the scope, also one that is safe by itself, and a preflight.
func TestEachMethodHasKeysOfItsOwn(t *testing.T) {
	f := newFixture(t)
	s, runs := f.guarded(t, httpapi.Policy{}, func(w http.ResponseWriter, r *http.Request) { says(http.StatusOK, r.Method)(w, r) })
	methods := []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}
	for _, replayed := range []string{"", "true"} {
		for _, method := range methods {
			res := s.do(t, method, "/things/1", "", "Idempotency-Key", "k")
			require.Equal(t, http.StatusOK, res.StatusCode, method)
			require.Equal(t, replayed, res.Header.Get("Idempotent-Replayed"), method)
			if method != "HEAD" {
				require.Equal(t, method, res.body)
			}
		}
	}
	require.Equal(t, len(methods), runs())
}

// Whatever has taken the body away before leaves nothing to tell two requests apart by.
func TestABodyThatWasReadBeforeIsNotTakenForNone(t *testing.T) {
	f := newFixture(t)
	h := httpapi.External(f.guard, httpapi.Policy{})(says(http.StatusOK, ""))
	for name, c := range map[string]struct {
		length int64
		read   func(r *http.Request) error
	}{
		"its length was announced": {3, func(r *http.Request) error { _, err := io.Copy(io.Discard, r.Body); return err }},
		"a form":                   {-1, func(r *http.Request) error { return r.ParseForm() }},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/things/1", strings.NewReader("a=1"))
		r.Header.Set("Idempotency-Key", "k")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.ContentLength = c.length
		require.NoError(t, c.read(r))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusInternalServerError, w.Code, name)
		require.Empty(t, f.states(t), name)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/things/1", http.NoBody)
	r.Header.Set("Idempotency-Key", "k")
	require.NoError(t, r.ParseForm())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code, "there was none")
}

// Two routers that are mounted see the same pattern and path; the client has sent two requests nevertheless.
func TestWhatIsMountedTwiceIsNotOneResource(t *testing.T) {
	f := newFixture(t)
	inner := http.NewServeMux()
	inner.Handle("POST /things/{id}", httpapi.External(f.guard, httpapi.Policy{})(says(http.StatusCreated, "made")))
	s := serve(t, func(m *httpapi.Mux) {
		m.Handle("/v1/", http.StripPrefix("/v1", inner))
		m.Handle("/v2/", http.StripPrefix("/v2", inner))
	})
	require.Equal(t, http.StatusCreated, postTo(t, s, "/v1/things/1", "k", `{}`).StatusCode)
	require.Equal(t, "true", postTo(t, s, "/v1/things/1", "k", `{}`).Header.Get("Idempotent-Replayed"))
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", postTo(t, s, "/v2/things/1", "k", `{}`).problem(t).Code)
}
