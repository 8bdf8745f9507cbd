package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
)

func echoPath(m *httpapi.Mux) {
	m.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("X-Path-Id", r.PathValue("id"))
		return nil
	})
	m.HandleFunc("POST /orders/{id}", func(http.ResponseWriter, *http.Request) error { return nil })
	m.Handle("GET /console/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "a page of its own", http.StatusNotFound)
	}))
}

func TestRouter(t *testing.T) {
	s := serve(t, echoPath)
	require.Equal(t, "a/b", s.do(t, "GET", "/orders/a%2Fb", "").Header.Get("X-Path-Id"))

	not := s.do(t, "DELETE", "/orders/7", "")
	require.Equal(t, "METHOD_NOT_ALLOWED", not.problem(t).Code)
	require.Equal(t, "GET, HEAD, POST", not.Header.Get("Allow"))

	require.Equal(t, "a page of its own\n", s.do(t, "GET", "/console/x", "").body, "a handler's own 404 is its own business")

	head := s.do(t, "HEAD", "/nowhere", "")
	require.Equal(t, http.StatusNotFound, head.StatusCode)
	require.Equal(t, "application/problem+json", head.Header.Get("Content-Type"))
}

func TestRouterRedirects(t *testing.T) {
	s := serve(t, echoPath)
	for path, want := range map[string]string{
		"/console":            "/console/",
		"/x/../orders/7?a=b":  "/orders/7?a=b",
		"/x//../nowhere":      "/nowhere",
		"/console/../nowhere": "/nowhere",
	} {
		a := s.do(t, "GET", path, "")
		require.Equal(t, http.StatusTemporaryRedirect, a.StatusCode, path)
		require.Equal(t, want, a.Header.Get("Location"), path)
	}
}

func TestRouterAsterisk(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), "OPTIONS", "*", nil)
	rec := httptest.NewRecorder()
	httpapi.NewMux(nil).ServeHTTP(rec, r)
	require.Equal(t, http.StatusBadRequest, rec.Code)
	require.Contains(t, rec.Body.String(), `"code":"REQUEST_INVALID"`)
}
