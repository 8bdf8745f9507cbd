package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
)

// raw sends bytes to a server and reads one response. A client of its own would not send what is tested here.
func raw(t *testing.T, s *service, request string) answer {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	go func() { _, _ = io.WriteString(conn, request) }() // a server that refuses does not read it all
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return answer{res, string(body)}
}

// chunked frames a body in chunks of n bytes.
func chunked(body string, n int) string {
	var b strings.Builder
	for len(body) > 0 {
		size := min(n, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", size, body[:size])
		body = body[size:]
	}
	return b.String() + "0\r\n\r\n"
}

const rawHead = "POST /things/1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"

func TestHowABodyIsFramedIsNotPartOfTheRequest(t *testing.T) {
	f := newFixture(t)
	s, runs := f.guarded(t, httpapi.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.TransferEncoding)
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		_, _ = fmt.Fprintf(w, "%d bytes of %d", len(body), r.ContentLength)
	})
	body := `"` + strings.Repeat("x", 200_000) + `"`
	first := raw(t, s, rawHead+"Idempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked(body, 1000))
	require.Equal(t, "200002 bytes of 200002", first.body)
	for name, request := range map[string]string{
		"other chunks":     "Transfer-Encoding: chunked\r\n\r\n" + chunked(body, 7),
		"with a length":    fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"and with trailer": "Transfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n" + strings.TrimSuffix(chunked(body, 1000), "\r\n") + "X-A: 1\r\n\r\n",
	} {
		res := raw(t, s, rawHead+"Idempotency-Key: k\r\n"+request)
		require.Equal(t, "true", res.Header.Get("Idempotent-Replayed"), name)
		require.Equal(t, first.body, res.body, name)
	}
	other := body[:len(body)-2] + `y"` // the last byte that counts
	res := raw(t, s, rawHead+"Idempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked(other, 1000))
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", res.problem(t).Code)
	require.Equal(t, 1, runs())
}

// endless is a body that never ends, and counts what is read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

func (e *endless) Close() error { return nil }

func TestABodyIsReadNoFurtherThanItsLimit(t *testing.T) {
	f := newFixture(t)
	body := &endless{}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/things/1", body)
	r.ContentLength = -1
	r.Header.Set("Idempotency-Key", "k")
	httpapi.External(f.guard, httpapi.Policy{MaxBody: 100_000})(says(http.StatusOK, "")).ServeHTTP(w, r)
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	require.LessOrEqual(t, body.read, 2*100_000)

	w, body.read = httptest.NewRecorder(), 0
	r.ContentLength = 100_001
	httpapi.External(f.guard, httpapi.Policy{MaxBody: 100_000})(says(http.StatusOK, "")).ServeHTTP(w, r)
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	require.Zero(t, body.read, "its length was announced")
	require.Empty(t, f.states(t))
}

// announced is a body that is shorter than it was said to be.
type announced struct{ io.Reader }

func (announced) Close() error { return nil }

// TestABodyTakesMemoryAsItArrives and no more than a few times its limit, whatever was announced and however it is framed.
func TestABodyTakesMemoryAsItArrives(t *testing.T) {
	const limit = 8 << 20
	for name, c := range map[string]struct {
		body   io.ReadCloser
		length int64
		most   uint64 // bytes that are allocated, in all
	}{
		"endless":                      {&endless{}, -1, 6 * limit},
		"at the limit, chunked":        {announced{io.LimitReader(&endless{}, limit)}, -1, 6 * limit},
		"at the limit, with a length":  {announced{io.LimitReader(&endless{}, limit)}, limit, 6 * limit},
		"short, whatever it announces": {announced{strings.NewReader("{}")}, limit, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/things/1", c.body)
			r.ContentLength = c.length
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := httpapi.ReadBody(w, r, limit)
			runtime.ReadMemStats(&after)
			require.Equal(t, name == "endless", err != nil)
			require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, c.most)
		})
	}
}

func TestBodiesThatClaimNothing(t *testing.T) {
	f := newFixture(t)
	s, runs := f.guarded(t, httpapi.Policy{MaxBody: 10}, says(http.StatusOK, ""))
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"too large, chunked":       {"Transfer-Encoding: chunked\r\n\r\n" + chunked("12345678901", 1), 413},
		"too large, by its length": {"Content-Length: 11\r\n\r\n12345678901", 413},
		"broken chunk":             {"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		"two framings":             {"Content-Length: 3\r\nTransfer-Encoding: gzip\r\n\r\n123", 501},
	} {
		require.Equal(t, c.status, raw(t, s, rawHead+"Idempotency-Key: k\r\n"+c.request).StatusCode, name)
		require.Empty(t, f.states(t), name)
	}
	require.Equal(t, http.StatusOK, raw(t, s, rawHead+"Idempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked("1234567890", 3)).StatusCode, "exactly the limit")
	require.Equal(t, 1, runs())
}

// A key is one value of one header line, and comes back in none.
func TestKeysInjectNothing(t *testing.T) {
	f := newFixture(t)
	s, runs := f.guarded(t, httpapi.Policy{}, says(http.StatusOK, ""))
	for name, key := range map[string]string{
		"repeated":            "a\r\nIdempotency-Key: b",
		"repeated, same":      "a\r\nidempotency-key: a",
		"joined":              "a, b",
		"joined, no space":    "a,b",
		"joined, quoted":      `"a","b"`,
		"control character":   "a\x01b",
		"NUL":                 "a\x00b",
		"bare CR":             "a\rSet-Cookie: canary=1",
		"folded line":         "a\r\n b",
		"not ASCII":           "k\xc3\xa9",
		"space":               "canary key",
		"256 bytes":           strings.Repeat("canary--", 32),
		"256 bytes in quotes": `"` + strings.Repeat("canary--", 32) + `"`,
		"byte sequence":       ":Y2FuYXJ5: x",
		"quote":               `canary"key`,
		"backslash":           `canary\key`,
		"escaped":             `"canary\\key"`,
		"space in quotes":     `"canary key"`,
		"parameter":           `"canary";a=1`,
		"two quoted":          `"canary" "key"`,
		"empty":               "",
	} {
		res := raw(t, s, rawHead+"Connection: close\r\nContent-Length: 2\r\nIdempotency-Key: "+key+"\r\n\r\n{}")
		require.Equal(t, http.StatusBadRequest, res.StatusCode, name)
		require.NotContains(t, res.body, "canary", name)
		require.NotContains(t, fmt.Sprint(res.Header), "canary", name)
	}
	require.NotContains(t, s.log.String(), "canary")
	require.Empty(t, f.states(t))
	for _, key := range []string{strings.Repeat("k", 255), `"` + strings.Repeat("q", 255) + `"`, `"a,b"`, "~!@#$%^&*()"} {
		require.Equal(t, http.StatusOK, raw(t, s, rawHead+"Content-Length: 2\r\nIdempotency-Key: "+key+"\r\n\r\n{}").StatusCode, key)
	}
	require.Equal(t, 4, runs())
}

func TestRefusalsOfKeysLinkToTheDocs(t *testing.T) {
	f := newFixture(t)
	const link = `<https://api.example.com/idempotency>; rel="describedby"`
	s, _ := f.guarded(t, httpapi.Policy{Docs: "https://api.example.com/idempotency", MaxBody: 10}, says(http.StatusBadGateway, ""))
	require.Empty(t, post(t, s, "k", `{}`).Header.Get("Link"), "an answer of the handler's")
	require.Empty(t, post(t, s, "k", `{"too":"large"}`).Header.Get("Link"), "a refusal of the body")
	for code, res := range map[string]answer{
		"IDEMPOTENCY_KEY_REQUIRED": post(t, s, "", `{}`),
		"IDEMPOTENCY_KEY_INVALID":  post(t, s, "a b", `{}`),
		"IDEMPOTENCY_KEY_REUSED":   post(t, s, "k", `{"a":1}`),
		"IDEMPOTENCY_ABANDONED":    post(t, s, "k", `{}`),
	} {
		require.Equal(t, code, res.problem(t).Code)
		require.Equal(t, link, res.Header.Get("Link"), code)
	}
}
