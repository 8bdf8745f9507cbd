package postgres_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/embedded"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// evidence is what a transaction leaves for its outcome to be told by.
type evidence string

const (
	nothing evidence = "nothing"
	row     evidence = "witness row"
	event   evidence = "outbox event"
	answer  evidence = "idempotency record"
)

// disaster is what becomes of the server in the moment of a cut.
type disaster string

const (
	none  disaster = "none"
	stop  disaster = "immediate stop"
	crash disaster = "crash of the backend" // of all of them, therefore: the postmaster begins anew
)

// cutlab is a server of its own behind a proxy that cuts, and what runs transactions through it.
type cutlab struct {
	server *embedded.Server
	proxy  *proxytest.Proxy
	truth  *postgres.DB // goes straight to the server
	sides  []side       // one an exec mode
}

// side is what a service has.
type side struct {
	db      *postgres.DB
	runner  *tx.Runner
	outbox  *outbox.Outbox
	records *pgidempotency.Records
}

func newCutlab(t *testing.T) *cutlab {
	t.Helper()
	l := &cutlab{server: pgtest.PrivateServer(t, nil)}
	m, err := migrations.New(l.server.DSN(), migrations.All(), &migrations.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = m.Up(t.Context())
	require.NoError(t, err)
	l.truth = open(t, postgres.Config{DSN: l.server.DSN(), MaxConns: 1})
	exec(t, l.truth, "create schema shop; create table shop.cut (n int8 primary key)")
	l.proxy = proxytest.New(t, l.server.DSN())
	for _, mode := range execModes {
		s := side{db: open(t, postgres.Config{DSN: l.proxy.DSN(), ExecMode: mode, MaxConns: 1})}
		s.runner, err = tx.NewRunner(s.db, &tx.RunnerOptions{
			CommitTimeout: 300 * time.Millisecond, ResolveTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		s.outbox, err = outbox.New(pgoutbox.New(s.db), nil)
		require.NoError(t, err)
		s.records = pgidempotency.New(s.db)
		l.sides = append(l.sides, s)
	}
	return l
}

// told is what a caller learnt, beside the truth.
type told struct {
	err       error
	hook      bool
	value     int64
	committed bool // the truth
}

// cut runs the nth transaction, cuts its COMMIT and waits until the server is through with it.
func (l *cutlab) cut(t *testing.T, n int64, s side, mode proxytest.Mode, e evidence, d disaster) (got told) {
	t.Helper()
	works(t, s.db)
	claim := l.claim(t, n, s, e)
	f := l.proxy.Break(mode, "commit\x00")
	pids := make(chan int64, 1)
	var with sync.WaitGroup
	defer with.Wait()
	running, end := context.WithCancel(t.Context())
	defer end()
	with.Go(func() { l.strike(running, t, f, mode, e, d, pids) })

	begin := s.runner.With(tx.Options{Witness: e == row})
	got.value, got.err = tx.Value(t.Context(), begin.InRootWrite, func(ctx context.Context, w *tx.Tx) (int64, error) {
		q, err := postgres.Querier(w)
		require.NoError(t, err)
		pids <- backend(t, q)
		if e == answer {
			require.NoError(t, s.records.Start(ctx, w, claim, nil))
		}
		exec(t, q, "insert into shop.cut (n) values ($1)", n)
		require.NoError(t, w.AfterCommit(func(context.Context) error { got.hook = true; return nil }))
		switch e {
		case event:
			err = s.outbox.Append(ctx, w, outbox.Event{Type: "cut.made", AggregateType: "cut", AggregateID: "1", Payload: []byte("x")})
		case answer:
			err = s.records.Complete(ctx, w, claim, idempotency.Answer{Payload: []byte("done")})
		}
		return n, err
	})
	select {
	case <-f.Struck():
	case <-time.After(time.Minute):
		require.FailNow(t, "COMMIT was not cut", "%v", got.err)
	}
	end()
	with.Wait()
	works(t, l.truth)
	// Whoever has written anything holds a lock on its transaction's id until the end.
	eventually(t, l.truth, "select not exists (select from pg_locks where locktype = 'transactionid' and pid <> pg_backend_pid())")
	got.committed = get[int64](t, l.truth, "select count(*) from shop.cut where n = $1", n) == 1
	return got
}

func (l *cutlab) claim(t *testing.T, n int64, s side, e evidence) idempotency.Claim {
	t.Helper()
	if e != answer {
		return idempotency.Claim{}
	}
	r := idempotency.Request{KeyVersion: "1", Route: "POST /cuts", Owner: "lab", Operation: "op", Lease: time.Hour, Expiry: 2 * time.Hour}
	binary.BigEndian.PutUint64(r.Scope[:], uint64(n))
	rec, made, err := s.records.Claim(t.Context(), r)
	require.NoError(t, err)
	require.True(t, made)
	return rec.Claim
}

// strike does the rest once the connection is cut.
func (l *cutlab) strike(running context.Context, t *testing.T, f *proxytest.Fault, mode proxytest.Mode, e evidence, d disaster, pids <-chan int64) {
	t.Helper()
	select {
	case <-f.Struck():
	case <-running.Done():
		select {
		case <-f.Struck():
		default:
			return
		}
	}
	pid := <-pids
	defer f.Pass()
	switch d {
	case stop:
		assert.NoError(t, errors.Join(l.server.StopImmediate(t.Context()), l.start(t)))
	case crash:
		assert.NoError(t, l.crash(t, int(pid)))
	case none:
		if mode == proxytest.Late && e != nothing { // only once the resolver waits: it must not have been told yet
			for waiting := false; !waiting && running.Err() == nil; {
				_ = l.truth.QueryRow(running, "select exists (select from pg_stat_activity where wait_event_type = 'Lock')").Scan(&waiting)
			}
		}
	}
}

// crash kills a backend, if it has not ended by itself, and waits until the postmaster has killed the others for it.
func (l *cutlab) crash(t *testing.T, pid int) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	bystander, err := pgx.Connect(ctx, l.server.DSN())
	if err != nil {
		return err
	}
	defer func() { _ = bystander.Close(ctx) }()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		if errors.Is(err, syscall.ESRCH) {
			return nil
		}
		return err
	}
	for err = nil; err == nil; {
		err = bystander.Ping(ctx)
	}
	return nil
}

// start starts the server that was stopped.
func (l *cutlab) start(t *testing.T) error {
	t.Helper()
	_, err := embedded.Start(t.Context(), embedded.Options{DataDir: l.server.DataDir(), BinDir: l.server.BinDir(), FsyncOff: true, Logger: slog.New(slog.DiscardHandler)})
	return err
}

// works waits until db's pool has a connection that works, which a disaster or a cut before may have taken.
func works(t *testing.T, db *postgres.DB) {
	t.Helper()
	require.Eventually(t, func() bool { return db.Ping(t.Context()) == nil }, time.Minute, 5*time.Millisecond)
}

// cuts makes n of them, of all kinds mixed, and holds each verdict against the truth.
func cuts(t *testing.T, n int) {
	t.Helper()
	l := newCutlab(t)
	modes := []proxytest.Mode{proxytest.Before, proxytest.Half, proxytest.After, proxytest.Late, proxytest.OnAnswer, proxytest.Mute}
	kinds := []evidence{row, event, answer, nothing}
	disasters := []disaster{stop, crash}
	verdicts := map[evidence]map[string]int{row: {}, event: {}, answer: {}, nothing: {}}
	for i := range n {
		mode, e, s, d := modes[i%6], kinds[i/6%4], l.sides[(i/24+i)%4], none
		if i%17 == 16 {
			d = disasters[i/17%2]
		}
		got := l.cut(t, int64(i), s, mode, e, d)
		what := []any{"cut %d: %s, %s, %s", i, mode, e, d}
		verdict := "committed"
		switch {
		case errors.Is(got.err, fault.DBCommitUnknown):
			verdict = "unknown"
			require.Equal(t, nothing, e, what...)
			require.False(t, fault.Retryable(got.err), what...)
		case got.err != nil:
			verdict = "not committed"
			require.ErrorIs(t, got.err, fault.DBUnavailable, what...)
			require.True(t, fault.Retryable(got.err), what...)
			require.False(t, got.committed, what...)
		default:
			require.True(t, got.committed, what...)
			require.EqualValues(t, i, got.value, what...)
		}
		require.Equal(t, got.err == nil, got.hook, what...)
		if got.err != nil {
			require.Zero(t, got.value, what...)
		}
		verdicts[e][verdict]++
	}
	t.Logf("%d cuts: %v", n, verdicts)
	require.Equal(t, map[string]int{"unknown": verdicts[nothing]["unknown"]}, verdicts[nothing], "without evidence nothing is told")
	for _, e := range []evidence{row, event, answer} {
		require.Positive(t, verdicts[e]["committed"], e)
		require.Positive(t, verdicts[e]["not committed"], e)
	}
}
