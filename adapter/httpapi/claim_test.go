package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/tx"
)

func TestADuplicateOfARunningOneIsToldToWait(t *testing.T) {
	f := newFixture(t)
	running, finish := make(chan struct{}), make(chan struct{})
	s := f.serve(t, httpapi.Policy{}, effect(func(ctx context.Context, tr *tx.Tx, r *httpapi.Request) (*httpapi.Response, error) {
		close(running)
		<-finish
		return created(ctx, tr, r)
	}))
	var first answer
	var wg sync.WaitGroup
	wg.Go(func() { first = post(t, s, "k", `{}`) })
	<-running
	res := post(t, s, "k", `{}`) // while the first one's transaction is open
	require.Equal(t, http.StatusConflict, res.StatusCode)
	require.Equal(t, "1", res.Header.Get("Retry-After"))
	require.Contains(t, res.body, "IDEMPOTENCY_IN_PROGRESS")
	close(finish)
	wg.Wait()
	require.Equal(t, http.StatusCreated, first.StatusCode)
}

func TestManyAtOnceTakeEffectOnce(t *testing.T) {
	f := newFixture(t)
	s := f.serve(t, httpapi.Policy{}, effect(created))
	var created, waits atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			switch res := post(t, s, "k", `{}`); res.StatusCode {
			case http.StatusCreated:
				created.Add(1)
			case http.StatusConflict:
				waits.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(50), created.Load()+waits.Load())
	require.Positive(t, created.Load())
	require.Equal(t, 1, f.count(t, "shop.effect"))
}

// postAndLeave is post by a client that leaves at a signal, before there is an answer.
func postAndLeave(t *testing.T, s *service, signal <-chan struct{}) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/things/1", strings.NewReader(`{}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k")
	go func() {
		select {
		case <-signal:
			leave()
		case <-ctx.Done():
		}
	}()
	_, err = s.Client().Do(req) //nolint:bodyclose // there is no response
	require.ErrorIs(t, err, context.Canceled)
}

func TestACallerThatLeavesFinalisesTheClaim(t *testing.T) {
	f := newFixture(t)
	running := make(chan struct{}, 1)
	s := f.serve(t, httpapi.Policy{}, effect(func(ctx context.Context, _ *tx.Tx, _ *httpapi.Request) (*httpapi.Response, error) {
		running <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	postAndLeave(t, s, running)
	require.Eventually(t, func() bool { return f.count(t, "caskeleton.idempotency_record") == 0 }, 30*time.Second, time.Millisecond)
	require.Zero(t, f.count(t, "shop.effect"))
}

// The claim is made, and nobody is told: its answer is lost on the way, until the caller gives up.
func TestACallerThatLeavesDuringTheClaimLeavesNone(t *testing.T) {
	p := proxytest.New(t, migrationstest.DSN(t, migrations.Idempotency()))
	f := openFixture(t, postgres.Config{DSN: p.DSN()}, nil)
	f.guard = f.newGuard(t, &tx.RunnerOptions{ResolveTimeout: time.Nanosecond}, nil)
	s := f.serve(t, httpapi.Policy{}, effect(created))
	leaves := func(claim string) {
		t.Helper()
		postAndLeave(t, s, p.Break(proxytest.Mute, claim).Struck())
		require.Eventually(t, func() bool { return f.count(t, "caskeleton.idempotency_record") == 0 }, 30*time.Second, time.Millisecond)
	}
	leaves("POST /things/{id}")

	// The same of a claim that is taken over, which names the operation that it was.
	p.Break(proxytest.Before, "commit\x00")
	require.Equal(t, http.StatusServiceUnavailable, post(t, s, "k", `{}`).StatusCode)
	var former string
	require.NoError(t, f.db.QueryRow(t.Context(), `update caskeleton.idempotency_record set lease_expires_at = clock_timestamp() returning operation`).Scan(&former))
	leaves(former)
	require.Equal(t, http.StatusCreated, post(t, s, "k", `{}`).StatusCode)
}

func TestCutAtCommitAKeyHasOneEffect(t *testing.T) {
	p := proxytest.New(t, migrationstest.DSN(t, migrations.Idempotency()))
	f := openFixture(t, postgres.Config{DSN: p.DSN()}, nil)
	_, err := f.db.Exec(t.Context(), `alter table shop.effect drop constraint canary_unique`) // two effects must be possible
	require.NoError(t, err)
	h := func(ctx context.Context, tr *tx.Tx, r *httpapi.Request) (*httpapi.Response, error) {
		q, err := postgres.Querier(tr)
		if err != nil {
			return nil, err
		}
		if _, err := q.Exec(ctx, `insert into shop.effect (name) values ($1)`, r.Header.Get("Idempotency-Key")); err != nil {
			return nil, err
		}
		return created(ctx, tr, r)
	}
	for name, cut := range map[string]struct {
		mode      proxytest.Mode
		committed bool
	}{
		"before":    {proxytest.Before, false},
		"after":     {proxytest.After, true},
		"on-answer": {proxytest.OnAnswer, true},
	} {
		for look, c := range map[string]struct {
			timeout time.Duration // on finding out what became of the transaction
			code    string        // of the first answer, if it is a problem
		}{
			"-found-out": {0, map[bool]string{false: "DB_UNAVAILABLE", true: ""}[cut.committed]},
			"-unknown":   {time.Nanosecond, "DB_COMMIT_UNKNOWN"},
		} {
			key := name + look
			f.guard = f.newGuard(t, &tx.RunnerOptions{ResolveTimeout: c.timeout}, &idempotency.Options{Lease: 100 * time.Millisecond})
			s := f.serve(t, httpapi.Policy{}, h)
			effects := func() int { return f.count(t, "shop.effect where name = '"+key+"'") }
			p.Break(cut.mode, "commit\x00")
			first := post(t, s, key, `{}`)
			if c.code == "" {
				require.Equal(t, http.StatusCreated, first.StatusCode, key)
			} else {
				require.Equal(t, http.StatusServiceUnavailable, first.StatusCode, key)
				require.Equal(t, c.code, first.problem(t).Code, key)
			}
			if c.code == "DB_COMMIT_UNKNOWN" {
				require.NotEmpty(t, first.Header.Get("Retry-After"), key)
			}
			var again answer
			require.Eventually(t, func() bool {
				again = post(t, s, key, `{}`)
				require.LessOrEqual(t, effects(), 1, key)
				return again.StatusCode != http.StatusConflict
			}, 30*time.Second, 5*time.Millisecond, key)
			require.Equal(t, http.StatusCreated, again.StatusCode, key)
			require.Equal(t, cut.committed, again.Header.Get("Idempotent-Replayed") == "true", key)
			require.Equal(t, 1, effects(), key)
		}
	}
}

func TestOneConnectionIsEnough(t *testing.T) {
	f := openFixture(t, postgres.Config{DSN: migrationstest.DSN(t, migrations.Idempotency()), MaxConns: 1}, nil)
	s := f.serve(t, httpapi.Policy{StoreRefusal: func(int) bool { return true }}, effect(created))
	require.Equal(t, http.StatusCreated, post(t, s, "first", `{}`).StatusCode)
	for range 2 { // the constraint refuses a second effect at COMMIT
		require.Equal(t, http.StatusConflict, post(t, s, "second", `{}`).StatusCode)
	}
	require.Equal(t, "true", post(t, s, "first", `{}`).Header.Get("Idempotent-Replayed"))
}
