package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/reqctx"
	"caskeleton.dev/tx"
)

func TestARepeatIsAnsweredFromTheStore(t *testing.T) {
	f := newFixture(t)
	s := f.serve(t, httpapi.Policy{}, effect(created))
	first := post(t, s, "k", `{}`)
	require.Equal(t, http.StatusCreated, first.StatusCode)
	require.Empty(t, first.Header.Get("Idempotent-Replayed"))
	require.NotEmpty(t, first.Header.Get("Set-Cookie"))
	firstBody := first.body

	again := post(t, s, "k", `{}`)
	require.Equal(t, http.StatusCreated, again.StatusCode)
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	require.Equal(t, firstBody, again.body)
	for _, name := range []string{"Content-Type", "Content-Length", "Location", "Etag"} {
		require.Equal(t, first.Header[name], again.Header[name], name)
	}
	require.Empty(t, again.Header.Get("Set-Cookie"), "a cookie belongs to whoever got it first")
	require.NotEqual(t, first.Header.Get("X-Request-Id"), again.Header.Get("X-Request-Id"))
	require.Equal(t, 1, f.count(t, "shop.effect"))
}

func TestKeysThatAreRefused(t *testing.T) {
	f := newFixture(t)
	transactional := f.serve(t, httpapi.Policy{}, effect(created))
	external, runs := f.guarded(t, httpapi.Policy{}, says(http.StatusCreated, ""))
	for name, c := range map[string]struct {
		headers []string
		code    string
	}{
		"missing":            {nil, "IDEMPOTENCY_KEY_REQUIRED"},
		"empty":              {[]string{"Idempotency-Key", ""}, "IDEMPOTENCY_KEY_INVALID"},
		"repeated":           {[]string{"Idempotency-Key", "a", "Idempotency-Key", "a"}, "IDEMPOTENCY_KEY_INVALID"},
		"joined by a proxy":  {[]string{"Idempotency-Key", "a, b"}, "IDEMPOTENCY_KEY_INVALID"},
		"256 bytes":          {[]string{"Idempotency-Key", strings.Repeat("k", 256)}, "IDEMPOTENCY_KEY_INVALID"},
		"open quote":         {[]string{"Idempotency-Key", `"a`}, "IDEMPOTENCY_KEY_INVALID"},
		"quote alone":        {[]string{"Idempotency-Key", `"`}, "IDEMPOTENCY_KEY_INVALID"},
		"quoted nothing":     {[]string{"Idempotency-Key", `""`}, "IDEMPOTENCY_KEY_INVALID"},
		"escape in a quoted": {[]string{"Idempotency-Key", `"a\"b"`}, "IDEMPOTENCY_KEY_INVALID"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range []*service{transactional, external} {
				res := post(t, s, "", `{}`, c.headers...)
				require.Equal(t, http.StatusBadRequest, res.StatusCode)
				require.Equal(t, c.code, res.problem(t).Code)
			}
		})
	}
	require.Zero(t, runs())
	require.Zero(t, f.count(t, "caskeleton.idempotency_record"))
}

func TestQuotedAndBareSpellOneKey(t *testing.T) {
	f := newFixture(t)
	s := f.serve(t, httpapi.Policy{}, effect(created))
	require.Equal(t, http.StatusCreated, post(t, s, `"k"`, `{}`).StatusCode)
	require.Equal(t, "true", post(t, s, `k`, `{}`).Header.Get("Idempotent-Replayed"))
}

func TestAKeyUsedForSomethingElseIsRefused(t *testing.T) {
	f := newFixture(t)
	s := f.serve(t, httpapi.Policy{}, effect(created))
	require.Equal(t, http.StatusCreated, post(t, s, "k", `{}`).StatusCode)
	for name, res := range map[string]answer{
		"body":         post(t, s, "k", `{"a":1}`),
		"white space":  post(t, s, "k", `{} `),
		"query":        postTo(t, s, "/things/1?a=1", "k", `{}`),
		"resource":     postTo(t, s, "/things/2", "k", `{}`),
		"content type": s.do(t, http.MethodPost, "/things/1", `{}`, "Idempotency-Key", "k", "Content-Type", "application/json; charset=utf-8"),
	} {
		require.Equal(t, http.StatusUnprocessableEntity, res.StatusCode, name)
		require.Contains(t, res.body, "IDEMPOTENCY_KEY_REUSED", name)
	}
	require.Equal(t, "true", post(t, s, "k", `{}`).Header.Get("Idempotent-Replayed"), "a refusal takes nothing from the first one")
	require.Equal(t, 1, f.count(t, "shop.effect"))
}

func TestTransactionalPanicsOnWhatCannotWork(t *testing.T) {
	guard := &idempotency.Guard{}
	for want, wrong := range map[string]func(){
		"httpapi: Transactional has a nil guard; make one with idempotency.New":            func() { httpapi.Transactional(nil, httpapi.Policy{}, created) },
		"httpapi: Transactional has a nil handler; give it the function that answers":      func() { httpapi.Transactional(guard, httpapi.Policy{}, nil) },
		"httpapi: Policy.MaxBody is -1; give a positive number of bytes, or 0 for 1048576": func() { httpapi.Transactional(guard, httpapi.Policy{MaxBody: -1}, created) },
	} {
		require.PanicsWithValue(t, want, wrong)
	}
}

func TestTenantsAndPrincipalsDoNotMeet(t *testing.T) {
	f := newFixture(t)
	h := httpapi.Transactional(f.guard, httpapi.Policy{}, created)
	for i, ctx := range []context.Context{
		t.Context(),
		reqctx.WithTenant(t.Context(), "acme"),
		reqctx.WithPrincipal(t.Context(), "acme"),
		reqctx.WithPrincipal(reqctx.WithTenant(t.Context(), "acme"), "ada"),
	} {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/things/1", strings.NewReader(`{}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusCreated, w.Code)
		require.Empty(t, w.Header().Get("Idempotent-Replayed"), "case %d", i)
	}
}

func TestFailuresTakeNoEffectAndAreNotStored(t *testing.T) {
	refuse := func(status int) handler {
		return func(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) {
			return &httpapi.Response{Status: status, Body: []byte("no")}, nil
		}
	}
	for name, c := range map[string]struct {
		answer handler
		status int
	}{
		"error without a code": {func(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) {
			return nil, errors.New("canary")
		}, 500},
		"error with a code": {func(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) {
			return nil, fault.New(fault.NotFound, "things.Put", nil)
		}, 404},
		"refusal":       {refuse(409), 409},
		"server error":  {refuse(503), 503},
		"no answer":     {func(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) { return nil, nil }, 500},
		"broken answer": {refuse(42), 500},
		"204 with body": {refuse(204), 500},
		"too large": {func(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) {
			return &httpapi.Response{Status: 200, Body: bytes.Repeat([]byte("x"), 16<<20)}, nil
		}, 500},
		"panic":             {func(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) { panic("canary") }, 500},
		"refused at COMMIT": {effect(created), 409},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s := f.serve(t, httpapi.Policy{}, effect(c.answer))
			for range 2 { // a repeat runs again
				res := post(t, s, "k", `{}`)
				require.Equal(t, c.status, res.StatusCode)
				require.Empty(t, res.Header.Get("Idempotent-Replayed"))
				body := res.body
				require.NotContains(t, body, "canary")
				require.NotContains(t, body, "23505")
			}
			require.Zero(t, f.count(t, "shop.effect"))
			require.Zero(t, f.count(t, "caskeleton.idempotency_record"))
		})
	}
}

func TestARefusalIsStoredWhereThePolicySaysSo(t *testing.T) {
	f := newFixture(t)
	runs := 0
	s := f.serve(t, httpapi.Policy{StoreRefusal: func(status int) bool { return status < 500 }},
		effect(func(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) {
			runs++
			return nil, fault.Invalid("things.Put", fault.Field{Path: "name", Problem: "is taken", Fix: fmt.Sprint("run ", runs)})
		}))
	first := post(t, s, "k", `{}`)
	require.Equal(t, http.StatusUnprocessableEntity, first.StatusCode)
	body := first.body
	require.Contains(t, body, "run 1")
	require.NotContains(t, body, first.Header.Get("X-Request-Id"), "the id of one exchange")

	again := post(t, s, "k", `{}`)
	require.Equal(t, http.StatusUnprocessableEntity, again.StatusCode)
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	require.Equal(t, httpapi.ProblemType, again.Header.Get("Content-Type"))
	require.Equal(t, body, again.body)
	require.Equal(t, 1, runs)
	require.Zero(t, f.count(t, "shop.effect"))
}

func TestARefusalThatIsNotFinalIsNeverStored(t *testing.T) {
	f := newFixture(t)
	for key, c := range map[string]struct {
		code   fault.Code
		status int
	}{
		"a-retry-could-change-it": {fault.DBDeadlock, http.StatusConflict},
		"nobody-knows":            {fault.DBCommitUnknown, http.StatusServiceUnavailable}, // of a transaction of its own
	} {
		s := f.serve(t, httpapi.Policy{StoreRefusal: func(int) bool { return true }},
			func(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) {
				return nil, fault.New(c.code, "things.Put", nil)
			})
		require.Equal(t, c.status, post(t, s, key, `{}`).StatusCode, key)
		require.Zero(t, f.count(t, "caskeleton.idempotency_record where payload is not null"), key)
	}
}

func TestDecodeRefusesBeforeAnythingIsClaimed(t *testing.T) {
	f := newFixture(t)
	type input struct{ Name string }
	s := f.serve(t, httpapi.Policy{MaxBody: 20, Decode: func(r *httpapi.Request) (any, error) {
		var in input
		return in, httpapi.Decode(r.Body, &in)
	}}, func(_ context.Context, _ *tx.Tx, r *httpapi.Request) (*httpapi.Response, error) {
		require.IsType(t, input{}, r.Input)
		return httpapi.JSON(http.StatusOK, r.Input)
	})
	require.Equal(t, http.StatusBadRequest, post(t, s, "k", `{"other":1}`).StatusCode)
	require.Equal(t, http.StatusRequestEntityTooLarge, post(t, s, "k", `{"Name":"`+strings.Repeat("x", 20)+`"}`).StatusCode)
	require.Zero(t, f.count(t, "caskeleton.idempotency_record"))
	require.Equal(t, http.StatusOK, post(t, s, "k", `{"Name":"x"}`).StatusCode)
}

// slowReader is a client that takes the headers and then nothing until it is told to.
type slowReader struct {
	*httptest.ResponseRecorder
	writing, read chan struct{}
}

func (s *slowReader) Write(b []byte) (int, error) {
	close(s.writing)
	<-s.read
	return s.ResponseRecorder.Write(b)
}

func TestNoConnectionIsHeldWhileTheResponseIsWritten(t *testing.T) {
	f := newFixture(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/things/1", strings.NewReader(`{}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "k")
	w := &slowReader{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() { httpapi.Transactional(f.guard, httpapi.Policy{}, effect(created)).ServeHTTP(w, r) })
	<-w.writing
	require.Zero(t, f.db.Stat().AcquiredConns())
	require.Equal(t, 1, f.count(t, "shop.effect"), "written before COMMIT")
	close(w.read)
	wg.Wait()
}
