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
func postAndLeave(t *testing.T, s *service, key string, signal <-chan struct{}) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/things/1", strings.NewReader(`{}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
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
	postAndLeave(t, s, "k", running)
	require.Eventually(t, func() bool { return f.count(t, "caskeleton.idempotency_record") == 0 }, 30*time.Second, time.Millisecond)
	require.Zero(t, f.count(t, "shop.effect"))
}

// The claim is made, and nobody is told: its answer is lost on the way, until the caller gives up.
func TestACallerThatLeavesDuringTheClaimLeavesNone(t *testing.T) {
	p := proxytest.New(t, migrationstest.DSN(t, migrations.Idempotency()))
	f := openFixture(t, postgres.Config{DSN: p.DSN()}, nil)
	s := f.serve(t, httpapi.Policy{}, effect(created))
	leaves := func(claim string) {
		t.Helper()
		postAndLeave(t, s, "k", p.Break(proxytest.Mute, claim).Struck())
		require.Eventually(t, func() bool { return f.count(t, "caskeleton.idempotency_record") == 0 }, 30*time.Second, time.Millisecond)
	}
	leaves("POST /things/{id}")

	// The same of a claim that is taken over, which names the operation that it was.
	require.Equal(t, http.StatusCreated, post(t, s, "k", `{}`).StatusCode)
	_, err := f.db.Exec(t.Context(), `delete from shop.effect`)
	require.NoError(t, err)
	var former string
	require.NoError(t, f.db.QueryRow(t.Context(), `update caskeleton.idempotency_record set state = 'CLAIMED', payload = null, lease_expires_at = clock_timestamp() returning operation`).Scan(&former))
	leaves(former)
	require.Equal(t, http.StatusCreated, post(t, s, "k", `{}`).StatusCode)
}

func TestCutAtCommitAKeyHasOneEffect(t *testing.T) {
	p := proxytest.New(t, migrationstest.DSN(t, migrations.Idempotency()))
	f := openFixture(t, postgres.Config{DSN: p.DSN()}, &idempotency.Options{Lease: 100 * time.Millisecond})
	_, err := f.db.Exec(t.Context(), `alter table shop.effect drop constraint canary_unique`) // two effects must be possible
	require.NoError(t, err)
	s := f.serve(t, httpapi.Policy{}, func(ctx context.Context, tr *tx.Tx, r *httpapi.Request) (*httpapi.Response, error) {
		q, err := postgres.Querier(tr)
		if err != nil {
			return nil, err
		}
		if _, err := q.Exec(ctx, `insert into shop.effect (name) values ($1)`, r.Header.Get("Idempotency-Key")); err != nil {
			return nil, err
		}
		return created(ctx, tr, r)
	})
	for name, c := range map[string]struct {
		cut       proxytest.Mode
		committed bool
	}{
		"before":    {proxytest.Before, false},
		"after":     {proxytest.After, true},
		"on-answer": {proxytest.OnAnswer, true},
	} {
		effects := func() int { return f.count(t, "shop.effect where name = '"+name+"'") }
		p.Break(c.cut, "commit\x00")
		first := post(t, s, name, `{}`)
		if c.committed {
			require.Equal(t, http.StatusCreated, first.StatusCode, name)
		} else {
			require.Equal(t, "DB_UNAVAILABLE", first.problem(t).Code, name)
		}

		var again answer
		require.Eventually(t, func() bool {
			again = post(t, s, name, `{}`)
			require.LessOrEqual(t, effects(), 1, name)
			return again.StatusCode != http.StatusConflict
		}, 30*time.Second, 5*time.Millisecond, name)
		require.Equal(t, http.StatusCreated, again.StatusCode, name)
		require.Equal(t, c.committed, again.Header.Get("Idempotent-Replayed") == "true", name)
		require.Equal(t, 1, effects(), name)
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
