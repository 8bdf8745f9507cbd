package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/tx"
)

// answers is a handler that has an effect and returns res.
func answers(res httpapi.Response) handler {
	return effect(func(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) { return &res, nil })
}

// "/files/a%2Fb" and "/files/a/b" are two resources with one decoded path.
func TestTheFingerprintHasTheEscapedPath(t *testing.T) {
	f := newFixture(t)
	s := serve(t, func(m *httpapi.Mux) {
		m.Handle("POST /files/{path...}", httpapi.Transactional(f.guard, httpapi.Policy{}, created))
	})
	require.Equal(t, http.StatusCreated, postTo(t, s, "/files/a%2Fb", "k", `{}`).StatusCode)
	res := postTo(t, s, "/files/a/b", "k", `{}`)
	require.Equal(t, http.StatusUnprocessableEntity, res.StatusCode)
	require.Contains(t, res.body, "IDEMPOTENCY_KEY_REUSED")
}

func TestRefusalsBeginAt400(t *testing.T) {
	for status, kept := range map[int]int{http.StatusSeeOther: 1, 399: 1, http.StatusBadRequest: 0} {
		f := newFixture(t)
		s := f.serve(t, httpapi.Policy{}, answers(httpapi.Response{Status: status}))
		require.Equal(t, status, post(t, s, "k", `{}`).StatusCode)
		require.Equal(t, kept, f.count(t, "shop.effect"), status)
		require.Equal(t, kept, f.count(t, "caskeleton.idempotency_record"), status)
	}
}

// A refusal that is not stored is checked as well, where nothing would stop it on its way to the client.
func TestABrokenRefusalIsNotSent(t *testing.T) {
	f := newFixture(t)
	s := f.serve(t, httpapi.Policy{}, answers(httpapi.Response{Status: 600, Body: []byte("canary")}))
	res := post(t, s, "k", `{}`)
	require.Equal(t, http.StatusInternalServerError, res.StatusCode)
	require.NotContains(t, res.body, "canary")
	require.Zero(t, f.count(t, "shop.effect"))
}

func TestARepeatKeepsCacheControl(t *testing.T) {
	f := newFixture(t)
	s := f.serve(t, httpapi.Policy{}, answers(httpapi.Response{Status: http.StatusOK, Header: http.Header{"Cache-Control": {"private, no-store"}}}))
	for _, replayed := range []string{"", "true"} {
		res := post(t, s, "k", `{}`)
		require.Equal(t, replayed, res.Header.Get("Idempotent-Replayed"))
		require.Equal(t, "private, no-store", res.Header.Get("Cache-Control"))
	}
}

// net/http sends a header however its name is spelled, and whatever the bytes of its value.
func TestHeadersAreReplayedAsTheyWereSent(t *testing.T) {
	f := newFixture(t)
	s := f.serve(t, httpapi.Policy{}, answers(httpapi.Response{Status: http.StatusOK, Header: http.Header{
		"ETag": {`"1"`}, "location": {"/things/1"}, "Content-Disposition": {"attachment; filename=\"caf\xe9\""}, "LINK": {"</a>", "</\xe9>"}, "Vary": {""},
	}}))
	for _, replayed := range []string{"", "true"} {
		res := post(t, s, "k", `{}`)
		require.Equal(t, replayed, res.Header.Get("Idempotent-Replayed"))
		for name, want := range map[string][]string{
			"Etag": {`"1"`}, "Location": {"/things/1"}, "Content-Disposition": {"attachment; filename=\"caf\xe9\""}, "Link": {"</a>", "</\xe9>"}, "Vary": {""},
		} {
			require.Equal(t, want, res.Header[name], name)
		}
	}
}
