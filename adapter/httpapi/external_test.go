package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/idempotency"
)

// guarded returns a server whose /things/{id} is a guarded handler that is counted.
func (f *fixture) guarded(t *testing.T, p httpapi.Policy, h http.HandlerFunc) (s *service, runs func() int) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		mu.Unlock()
		h(w, r)
	})
	s = serve(t, func(m *httpapi.Mux) { m.Handle("/things/{id}", httpapi.External(f.guard, p)(counted)) })
	return s, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// states returns the states of all records.
func (f *fixture) states(t *testing.T) (states []string) {
	t.Helper()
	require.NoError(t, f.db.QueryRow(t.Context(), `select coalesce(array_agg(state order by created_at), '{}') from caskeleton.idempotency_record`).Scan(&states))
	return states
}

// says is a handler that answers with a status and a body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestAnExternalOperationIsExecutingWhileItRunsAndCompletedBeforeItIsAnswered(t *testing.T) {
	f := newFixture(t)
	s, runs := f.guarded(t, httpapi.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, []string{"EXECUTING"}, f.states(t))
		assert.Zero(t, f.db.Stat().AcquiredConns(), "a connection is held meanwhile")
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.Equal(t, "any bytes", string(body))
		assert.Equal(t, int64(len(body)), r.ContentLength)
		assert.Equal(t, "1", r.PathValue("id"))
		w.Header().Set("Location", "/things/1")
		w.Header().Set("Set-Cookie", "session=canary")
		says(http.StatusCreated, "made")(w, r)
	})
	first := s.do(t, http.MethodPost, "/things/1", "any bytes", "Idempotency-Key", "k", "Content-Type", "text/plain")
	require.Equal(t, http.StatusCreated, first.StatusCode)
	require.Empty(t, first.Header.Get("Idempotent-Replayed"))
	require.Equal(t, []string{"COMPLETED"}, f.states(t))

	again := s.do(t, http.MethodPost, "/things/1", "any bytes", "Idempotency-Key", "k", "Content-Type", "text/plain")
	require.Equal(t, http.StatusCreated, again.StatusCode)
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	require.Equal(t, "/things/1", again.Header.Get("Location"))
	require.Empty(t, again.Header.Get("Set-Cookie"))
	require.Equal(t, first.body, again.body)
	require.Equal(t, 1, runs())
}

func TestADuplicateOfARunningExternalOperationIsToldToWait(t *testing.T) {
	f := newFixture(t)
	running, finish := make(chan struct{}), make(chan struct{})
	s, _ := f.guarded(t, httpapi.Policy{Docs: "https://api.example.com/idempotency"}, func(w http.ResponseWriter, r *http.Request) {
		close(running)
		<-finish
		says(http.StatusCreated, "")(w, r)
	})
	var wg sync.WaitGroup
	wg.Go(func() { post(t, s, "k", `{}`) })
	<-running
	res := post(t, s, "k", `{}`)
	close(finish)
	wg.Wait()
	require.Equal(t, http.StatusConflict, res.StatusCode)
	require.Equal(t, "1", res.Header.Get("Retry-After"))
	require.Equal(t, "IDEMPOTENCY_IN_PROGRESS", res.problem(t).Code)
	require.Equal(t, `<https://api.example.com/idempotency>; rel="describedby"`, res.Header.Get("Link"))
}

func TestWhatBecomesOfARefusal(t *testing.T) {
	always := func(int) bool { return true }
	never := func(int) bool { return false }
	for name, c := range map[string]struct {
		policy httpapi.Policy
		status int
		state  string // "" where the key is given back
	}{
		"4xx":                       {httpapi.Policy{}, 422, ""},
		"the first of them":         {httpapi.Policy{}, 400, ""},
		"4xx, stored":               {httpapi.Policy{StoreRefusal: always}, 422, "FAILED"},
		"4xx after an effect":       {httpapi.Policy{NoEffect: never}, 422, "ABANDONED"},
		"time ran out":              {httpapi.Policy{}, 408, "ABANDONED"},
		"caller left":               {httpapi.Policy{}, 499, "ABANDONED"},
		"5xx":                       {httpapi.Policy{}, 502, "ABANDONED"},
		"5xx, stored":               {httpapi.Policy{StoreRefusal: always}, 502, "FAILED"},
		"5xx before any effect":     {httpapi.Policy{NoEffect: always}, 503, ""},
		"others are stored":         {httpapi.Policy{StoreRefusal: func(status int) bool { return status == 404 }}, 422, ""},
		"others are without effect": {httpapi.Policy{NoEffect: func(status int) bool { return status == 503 }}, 502, "ABANDONED"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s, runs := f.guarded(t, c.policy, says(c.status, "no"))
			first := post(t, s, "k", `{}`)
			require.Equal(t, c.status, first.StatusCode)
			require.Equal(t, "no", first.body)
			again := post(t, s, "k", `{}`)
			switch c.state {
			case "":
				require.Empty(t, f.states(t))
				require.Equal(t, c.status, again.StatusCode)
				require.Equal(t, 2, runs())
				return
			case "FAILED":
				require.Equal(t, c.status, again.StatusCode)
				require.Equal(t, "no", again.body)
				require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
			case "ABANDONED":
				require.Equal(t, http.StatusConflict, again.StatusCode)
				require.Equal(t, "IDEMPOTENCY_ABANDONED", again.problem(t).Code)
			}
			require.Equal(t, []string{c.state}, f.states(t))
			require.Equal(t, 1, runs())
		})
	}
}

// What a handler says to a caller who has left may be due to just that.
func TestARefusalToACallerWhoHasLeftIsNotStored(t *testing.T) {
	f := newFixture(t)
	running := make(chan struct{}, 1)
	s, _ := f.guarded(t, httpapi.Policy{StoreRefusal: func(int) bool { return true }}, func(w http.ResponseWriter, r *http.Request) {
		running <- struct{}{}
		<-r.Context().Done()
		says(http.StatusInternalServerError, "")(w, r)
	})
	postAndLeave(t, s, running)
	require.Eventually(t, func() bool { return f.states(t)[0] != "EXECUTING" }, 30*time.Second, time.Millisecond)
	require.Equal(t, []string{"ABANDONED"}, f.states(t))
}

func TestAnAbandonedKeyIsAnsweredOnceItIsSettled(t *testing.T) {
	f := newFixture(t)
	s, runs := f.guarded(t, httpapi.Policy{}, says(http.StatusBadGateway, ""))
	post(t, s, "k", `{}`)
	key := idempotency.Key{Method: "POST", Route: "/things/{id}", Client: "k"}
	e, err := f.guard.Show(t.Context(), key)
	require.NoError(t, err)
	value := map[string]int{"status": http.StatusOK} // what an operation that is no route would answer
	require.ErrorIs(t, f.guard.Reconcile(t.Context(), e.Claim, idempotency.CompletedWith(value)), idempotency.ErrOtherForm)
	require.NoError(t, f.guard.Reconcile(t.Context(), e.Claim, idempotency.CompletedWith(&httpapi.Response{Status: http.StatusCreated, Body: []byte("charged")})))
	res := post(t, s, "k", `{}`)
	require.Equal(t, http.StatusCreated, res.StatusCode)
	require.Equal(t, "charged", res.body)
	require.Equal(t, "true", res.Header.Get("Idempotent-Replayed"))
	require.Equal(t, 1, runs())
}

// What was stored as the answer of a route and is none, by whatever way, is not made one.
func TestAStoredValueIsNoResponse(t *testing.T) {
	f := newFixture(t)
	s, runs := f.guarded(t, httpapi.Policy{}, says(http.StatusCreated, "charged"))
	post(t, s, "k", `{}`)
	_, err := f.db.Exec(t.Context(), `update caskeleton.idempotency_record set payload = $1`, []byte("{\"status\":200}\n"))
	require.NoError(t, err)
	res := post(t, s, "k", `{}`)
	require.Equal(t, http.StatusInternalServerError, res.StatusCode)
	require.Equal(t, "INTERNAL", res.problem(t).Code)
	require.Equal(t, 1, runs())
}

func TestAPanicAfterWritingAbandons(t *testing.T) {
	f := newFixture(t)
	s, runs := f.guarded(t, httpapi.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		says(http.StatusCreated, "canary")(w, r)
		panic("canary")
	})
	res := post(t, s, "k", `{}`)
	require.Equal(t, http.StatusInternalServerError, res.StatusCode)
	require.NotContains(t, res.body, "canary")
	require.Equal(t, []string{"ABANDONED"}, f.states(t))
	require.Equal(t, "IDEMPOTENCY_ABANDONED", post(t, s, "k", `{}`).problem(t).Code)
	require.Equal(t, 1, runs())
}

func TestACallerThatLeavesFinalisesTheExternalOperation(t *testing.T) {
	for name, c := range map[string]struct {
		context func(context.Context) context.Context
		state   string
	}{
		"and the handler gives up": {func(ctx context.Context) context.Context { return ctx }, "ABANDONED"},
		"and the handler goes on":  {context.WithoutCancel, "COMPLETED"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			running := make(chan struct{}, 1)
			s, runs := f.guarded(t, httpapi.Policy{}, func(w http.ResponseWriter, r *http.Request) {
				running <- struct{}{}
				<-r.Context().Done()
				if err := c.context(r.Context()).Err(); err != nil {
					httpapi.WriteProblem(w, r, err, nil)
					return
				}
				says(http.StatusCreated, "done")(w, r)
			})
			postAndLeave(t, s, running)
			require.Eventually(t, func() bool { return f.states(t)[0] == c.state }, 30*time.Second, time.Millisecond)
			post(t, s, "k", `{}`)
			require.Equal(t, 1, runs())
		})
	}
}

func TestARequestWithoutAKeyPassesWhereKeysAreOptional(t *testing.T) {
	f := newFixture(t)
	s, runs := f.guarded(t, httpapi.Policy{Optional: true}, func(_ http.ResponseWriter, r *http.Request) {
		_, guarded := httpapi.ExecutionFrom(r.Context())
		assert.Equal(t, r.Header.Get("Idempotency-Key") != "", guarded)
	})
	for range 2 {
		require.Equal(t, http.StatusOK, post(t, s, "", `{}`).StatusCode)
	}
	require.Equal(t, 2, runs())
	require.Empty(t, f.states(t))
	require.Equal(t, http.StatusOK, post(t, s, "k", `{}`).StatusCode)
	require.Equal(t, []string{"COMPLETED"}, f.states(t))
	require.Equal(t, http.StatusBadRequest, s.do(t, http.MethodPost, "/things/1", `{}`, "Idempotency-Key", "").StatusCode, "an empty key is a broken one")
}

func TestAHandlerSendsItsKeyOnAndRenewsItsLease(t *testing.T) {
	f := newFixture(t)
	s, _ := f.guarded(t, httpapi.Policy{Lease: time.Minute}, func(_ http.ResponseWriter, r *http.Request) {
		e, ok := httpapi.ExecutionFrom(r.Context())
		assert.True(t, ok)
		assert.Len(t, e.Key(), 64)
		assert.NotContains(t, e.Key(), r.Header.Get("Idempotency-Key"))
		lease := func() (d time.Duration) {
			assert.NoError(t, f.db.QueryRow(t.Context(), `select lease_expires_at - clock_timestamp() from caskeleton.idempotency_record`).Scan(&d))
			return d
		}
		assert.LessOrEqual(t, lease(), time.Minute, "the policy's")
		assert.Greater(t, lease(), 30*time.Second, "the guard's")
		assert.NoError(t, e.Renew(r.Context(), time.Hour))
		assert.Greater(t, lease(), time.Minute)
	})
	require.Equal(t, http.StatusOK, post(t, s, "k", `{}`).StatusCode)
}

func TestAHandlerThatOutlivesItsLeaseIsTakenForDead(t *testing.T) {
	f := newFixture(t)
	expired := make(chan struct{})
	running := make(chan struct{})
	s, runs := f.guarded(t, httpapi.Policy{Lease: time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		close(running)
		<-expired
		says(http.StatusCreated, "late")(w, r)
	})
	var first answer
	var wg sync.WaitGroup
	wg.Go(func() { first = post(t, s, "k", `{}`) })
	<-running
	require.Eventually(t, func() bool { return post(t, s, "k", `{}`).problem(t).Code == "IDEMPOTENCY_ABANDONED" }, 30*time.Second, time.Millisecond)
	close(expired)
	wg.Wait()
	require.Equal(t, "IDEMPOTENCY_ABANDONED", first.problem(t).Code, "a late answer is not given: whoever settles the record may give another")
	require.Equal(t, []string{"ABANDONED"}, f.states(t))
	require.Equal(t, 1, runs())
}

func TestExpiryIsTheRoutes(t *testing.T) {
	f := newFixture(t)
	for key, p := range map[string]httpapi.Policy{"guard": {}, "route": {Expiry: 72 * time.Hour}} {
		s, _ := f.guarded(t, p, says(http.StatusCreated, ""))
		post(t, s, key, `{}`)
		created := f.serve(t, httpapi.Policy{Expiry: p.Expiry}, created)
		postTo(t, created, "/things/1?transactional", key+"-transactional", `{}`)
	}
	require.Equal(t, 2, f.count(t, `caskeleton.idempotency_record where expires_at - created_at between interval '23:59' and interval '24:01'`))
	require.Equal(t, 2, f.count(t, `caskeleton.idempotency_record where expires_at - created_at between interval '71:59' and interval '72:01'`))
}

func TestTheRouteOfThePolicyIsTheScopes(t *testing.T) {
	f := newFixture(t)
	s, runs := f.guarded(t, httpapi.Policy{Route: "/by/hand"}, says(http.StatusCreated, ""))
	post(t, s, "k", `{}`)
	_, err := f.guard.Show(t.Context(), idempotency.Key{Method: "POST", Route: "/by/hand", Client: "k"})
	require.NoError(t, err)
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", postTo(t, s, "/things/2", "k", `{}`).problem(t).Code, "another resource of the route")
	require.Equal(t, 1, runs())
}

// A claim that nobody could make says nothing of the handler.
func TestTheHandlerDoesNotRunWithoutItsRecord(t *testing.T) {
	f := openFixture(t, postgres.Config{DSN: migrationstest.DSN(t, migrations.Idempotency())}, nil)
	_, err := f.db.Exec(t.Context(), `alter table caskeleton.idempotency_record add constraint broken check (state <> 'EXECUTING') not valid`)
	require.NoError(t, err)
	s, runs := f.guarded(t, httpapi.Policy{}, says(http.StatusCreated, ""))
	require.GreaterOrEqual(t, post(t, s, "k", `{}`).StatusCode, http.StatusBadRequest)
	require.Zero(t, runs())
	require.Empty(t, f.states(t))
}

// Problems of the handler's own, after it has begun to answer, leave no torn answer: the connection is aborted, as without the guard.
func TestAProblemWithinAnAnswerIsNotAPartOfIt(t *testing.T) {
	f := newFixture(t)
	s, _ := f.guarded(t, httpapi.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		says(http.StatusOK, "half")(w, r)
		httpapi.WriteProblem(w, r, errors.New("canary"), nil)
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/things/1", strings.NewReader(`{}`))
	require.NoError(t, err)
	req.Header.Set("Idempotency-Key", "k")
	_, err = s.Client().Do(req) //nolint:bodyclose // there is no response
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"ABANDONED"}, f.states(t))
}

func TestTheAccessLineHasTheCodeOfTheHandlersProblem(t *testing.T) {
	f := newFixture(t)
	s, _ := f.guarded(t, httpapi.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		httpapi.WriteProblem(w, r, httpapi.Decode(nil, &struct{}{}), nil)
	})
	post(t, s, "k", `{}`)
	require.Equal(t, "REQUEST_INVALID", s.log.lines(t, "request")[0]["code"])
}

func TestExternalPanicsOnWhatCannotWork(t *testing.T) {
	guard := &idempotency.Guard{}
	for want, wrong := range map[string]func(){
		"httpapi: External has a nil guard; make one with idempotency.New":                     func() { httpapi.External(nil, httpapi.Policy{}) },
		"httpapi: External has a nil handler; give it the one to guard":                        func() { httpapi.External(guard, httpapi.Policy{})(nil) },
		"httpapi: Policy.MaxResponse is -1; give a positive number of bytes, or 0 for 1048576": func() { httpapi.External(guard, httpapi.Policy{MaxResponse: -1}) },
		"httpapi: Policy.Docs is \"/docs\"; give an absolute http or https URL":                func() { httpapi.External(guard, httpapi.Policy{Docs: "/docs"}) },
		"httpapi: Policy.Docs is \"https://a/>;x\"; give an absolute http or https URL":        func() { httpapi.External(guard, httpapi.Policy{Docs: "https://a/>;x"}) },
		"httpapi: Policy: idempotency: Expiry is -1ns; it must be positive, or 0 for 24h0m0s":  func() { httpapi.External(guard, httpapi.Policy{Expiry: -1}) },
		"httpapi: Policy.Decode is for Transactional; a handler of External reads its body itself": func() {
			httpapi.External(guard, httpapi.Policy{Decode: func(*httpapi.Request) (any, error) { return nil, nil }})
		},
		"httpapi: Policy.Optional, NoEffect and MaxResponse are for External; Transactional needs a key, undoes, and has its response in memory already": func() {
			httpapi.Transactional(guard, httpapi.Policy{Optional: true}, created)
		},
	} {
		require.PanicsWithValue(t, want, wrong)
	}
}
