package httpapi_test

import (
	"context"
	"flag"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/tx"
)

// go test -run Crowd -crowd 10000 is what the kit is built for; each takes some 100 KB of memory.
var crowd = flag.Int("crowd", 1000, "requests with one key at a time")

// rush sends the same request many times at once, and counts the answers.
type rush struct {
	f        *fixture
	dsn      string
	conns    int32
	client   *http.Client
	url      string
	runs     atomic.Int64
	refused  atomic.Int64
	replayed atomic.Int64
	first    atomic.Int64
	others   sync.WaitGroup // all but the one that runs
	held     atomic.Int64   // connections of the pool, while all of them have their answer and it runs
}

func newRush(t *testing.T) *rush {
	t.Helper()
	dsn := migrationstest.DSN(t, migrations.Idempotency())
	r := &rush{dsn: dsn, conns: 4}
	r.f = openFixture(t, postgres.Config{DSN: dsn, MaxConns: r.conns, ApplicationName: "crowd", IdleTxTimeout: 5 * time.Minute}, nil)
	r.others.Add(*crowd - 1)
	return r
}

// run is what the one does: it lasts until all others have their answers.
func (r *rush) run() {
	r.runs.Add(1)
	r.others.Wait()
	r.held.Store(int64(r.f.db.Stat().AcquiredConns()))
}

func (r *rush) serve(t *testing.T, h http.Handler) {
	t.Helper()
	p := newPipes() // 10,000 requests would take 20,000 file descriptors
	s := httptest.NewUnstartedServer(httpapi.Wrap(h, (&logBook{}).logger()))
	_ = s.Listener.Close()
	s.Listener = p
	s.Start()
	t.Cleanup(s.Close)
	r.url = s.URL
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return p.dial(), nil }, MaxIdleConnsPerHost: -1}
	t.Cleanup(transport.CloseIdleConnections)
	r.client = &http.Client{Transport: transport}
}

func (r *rush) send(t *testing.T) {
	t.Helper()
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range *crowd {
		wg.Go(func() {
			<-start
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/things", strings.NewReader(`{}`))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Idempotency-Key", "k")
			res, err := r.client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			_ = res.Body.Close()
			switch {
			case res.StatusCode == http.StatusConflict && res.Header.Get("Retry-After") == "1":
				r.refused.Add(1)
				r.others.Done()
			case res.StatusCode == http.StatusCreated && res.Header.Get("Idempotent-Replayed") == "true":
				r.replayed.Add(1)
			case res.StatusCode == http.StatusCreated:
				r.first.Add(1)
			default:
				t.Errorf("status %d", res.StatusCode)
			}
		})
	}
	close(start)
	wg.Wait()
}

// prove sends the crowd while the one runs, and again when it is done.
func (r *rush) prove(t *testing.T, held int64) {
	t.Helper()
	watch := pgtest.Connect(t, r.dsn)
	r.send(t)
	require.Equal(t, int64(1), r.first.Load())
	require.Equal(t, int64(*crowd-1), r.refused.Load(), "told to wait, at once")
	require.Equal(t, held, r.held.Load())
	r.send(t)
	require.Equal(t, int64(*crowd), r.replayed.Load())
	require.Equal(t, int64(1), r.runs.Load())
	require.LessOrEqual(t, sessions(t, watch), int(r.conns))
}

func sessions(t *testing.T, watch *pgx.Conn) (n int) {
	t.Helper()
	require.NoError(t, watch.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'crowd'`).Scan(&n))
	return n
}

func TestACrowdWithOneKeyRunsOneExternalOperation(t *testing.T) {
	r := newRush(t)
	r.serve(t, httpapi.External(r.f.guard, httpapi.Policy{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.run()
		w.WriteHeader(http.StatusCreated)
	})))
	r.prove(t, 0)
}

func TestACrowdWithOneKeyRunsOneTransaction(t *testing.T) {
	r := newRush(t)
	r.serve(t, httpapi.Transactional(r.f.guard, httpapi.Policy{}, effect(func(ctx context.Context, tr *tx.Tx, req *httpapi.Request) (*httpapi.Response, error) {
		r.run()
		return created(ctx, tr, req)
	})))
	r.prove(t, 1)
	require.Equal(t, 1, r.f.count(t, "shop.effect"))
}
