package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
)

func TestStoredResponsesComeBackWhole(t *testing.T) {
	for name, r := range map[string]httpapi.Response{
		"JSON":       {Status: 201, Header: http.Header{"Content-Type": {"application/json"}, "Location": {"/things/1"}, "Etag": {`"1"`}}, Body: []byte(`{"n":1}`)},
		"no content": {Status: 204, Header: http.Header{}, Body: []byte{}},
		"binary":     {Status: 200, Header: http.Header{"Content-Type": {"image/png"}}, Body: []byte{0, 1, 2, '\n', 0xff, '\n'}},
		"two links":  {Status: 200, Header: http.Header{"Link": {"</a>", "</b>"}}, Body: []byte("x")},
		"compressed": {Status: 200, Header: http.Header{"Content-Encoding": {"br"}, "Vary": {"Accept-Encoding"}, "Content-Disposition": {"attachment"}}, Body: []byte{11, 2, 128, 'x', 3}},
		"empty":      {Status: 200, Header: http.Header{}, Body: []byte{}},
	} {
		t.Run(name, func(t *testing.T) {
			stored, err := r.MarshalBinary()
			require.NoError(t, err)
			var back httpapi.Response
			require.NoError(t, back.UnmarshalBinary(stored))
			require.Equal(t, r, back)
		})
	}
}

func TestWhatDescribesAnAnswerIsStored(t *testing.T) {
	r := httpapi.Response{Status: 200, Header: http.Header{}, Body: []byte{}}
	for _, name := range []string{
		"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length", "Content-Location", "Content-Type", "ETag",
		"Last-Modified", "Link", "Location", "Vary",
	} {
		r.Header.Set(name, "of "+name)
	}
	stored, err := r.MarshalBinary()
	require.NoError(t, err)
	var back httpapi.Response
	require.NoError(t, back.UnmarshalBinary(stored))
	require.Equal(t, r, back)
}

func TestWhatBelongsToOneExchangeIsNotStored(t *testing.T) {
	r := httpapi.Response{Status: 200, Header: http.Header{}}
	for _, name := range []string{
		"Set-Cookie", "Date", "X-Request-Id", "Connection", "Authorization", "Retry-After", "X-Anything",
		"Transfer-Encoding", "Server", "WWW-Authenticate", "Idempotent-Replayed", "Age", "Via", "Strict-Transport-Security",
	} {
		r.Header.Set(name, "canary")
	}
	stored, err := r.MarshalBinary()
	require.NoError(t, err)
	require.NotContains(t, string(stored), "canary")
}

func TestResponsesThatHTTPDoesNotAllowAreRefused(t *testing.T) {
	for _, r := range []httpapi.Response{{}, {Status: 101}, {Status: 600}, {Status: 204, Body: []byte("x")}, {Status: 205, Body: []byte("x")}, {Status: 304, Body: []byte("x")}} {
		_, err := r.MarshalBinary()
		require.Error(t, err, "%d", r.Status)
	}
	var back httpapi.Response
	for _, stored := range []string{"", "{}", "no JSON\nbody", "http no JSON\nbody", "http {\"status\":42}\n", "http {\"status\":200}", "{\"status\":200}\n"} {
		require.Error(t, back.UnmarshalBinary([]byte(stored)), stored)
	}
}

func TestHeadHasLengthAndNoBody(t *testing.T) {
	w := httptest.NewRecorder()
	r := httpapi.Response{Status: 200, Body: []byte("four")}
	r.Write(w, httptest.NewRequestWithContext(t.Context(), http.MethodHead, "/", nil))
	require.Equal(t, "4", w.Header().Get("Content-Length"))
	require.Empty(t, w.Body.String())

	w = httptest.NewRecorder()
	none := httpapi.Response{Status: 204}
	none.Write(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	require.Empty(t, w.Header().Get("Content-Length"))
}
