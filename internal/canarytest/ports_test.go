package canarytest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pginbox"
	"caskeleton.dev/adapter/postgres/pglock"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/adapter/postgres/pgschedule"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/inbox"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/schedule"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

const (
	soon = 30 * time.Second // for what must happen
	tick = 10 * time.Millisecond
	// trapped is what the log has of a statement that fell into a trap.
	trapped = "schema=n4med table=n4med column=n4med constraint=n4med"
)

// until runs a worker until the log holds each of says.
func (w *watch) until(t *testing.T, work func(ctx context.Context) error, says ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	for _, s := range says {
		require.Eventually(t, func() bool { return w.says(s) }, soon, tick, s)
	}
	stop()
	<-ended
}

// answer lets a client see how a service answers that returns err.
func (w *watch) answer(t *testing.T, fail func(ctx context.Context) error) {
	t.Helper()
	w.serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("GET /", func(_ http.ResponseWriter, r *http.Request) error { return fail(r.Context()) })
	})("GET", "/", "")
}

func TestNothingOfLocks(t *testing.T) {
	w := newWatch(t)
	db := w.open(t, postgres.Config{}, migrations.Lock())
	driver, err := pglock.New(db, &pglock.Options{ListenDSN: "postgres://c4nary:c4nary@127.0.0.1:1/c4nary"})
	require.NoError(t, err)
	locker, err := lock.New(driver, &lock.Options{Meter: w.meter, Logger: w.log, Lease: 3 * time.Second})
	require.NoError(t, err)
	w.until(t, locker.Run, "releases of locks in other processes are not heard", "connection refused")

	lease, err := locker.Acquire(w.ctx, "held", nil)
	require.NoError(t, err)
	failed := errors.New(canary)
	require.ErrorIs(t, locker.Do(w.ctx, "key", nil, func(context.Context) error {
		trap(t, db, "caskeleton.lock_lease")
		return failed
	}), failed)
	w.until(t, lease.KeepAlive, "could not be renewed")
	w.answer(t, func(ctx context.Context) error {
		_, err := locker.Acquire(ctx, "another", nil)
		return err
	})
	w.answer(t, func(ctx context.Context) error { return lease.Release(ctx) })
	w.silent(t, "could not be given back", trapped)
	require.Contains(t, w.metrics(t), "lock.")
}

func TestNothingOfJobs(t *testing.T) {
	w := newWatch(t)
	db := w.open(t, postgres.Config{}, migrations.Lock())
	driver, err := pglock.New(db, nil)
	require.NoError(t, err)
	locker, err := lock.New(driver, &lock.Options{Meter: w.meter, Logger: w.log})
	require.NoError(t, err)
	job := func(name string, run func(ctx context.Context) error) schedule.Job {
		return schedule.Job{Name: name, When: schedule.Every(time.Minute), AtMost: time.Minute, Run: run}
	}
	s, err := schedule.New(pgschedule.New(db), locker, []schedule.Job{
		job("fails", func(context.Context) error { return fmt.Errorf("%s: %w", canary, errors.New(canary)) }),
		job("panics", func(context.Context) error { panic(canary) }),
		job("meets.a.server", func(ctx context.Context) error {
			_, err := db.Exec(ctx, `do $$ begin raise exception 'c4nary' using errcode = '23505', detail = 'c4nary', constraint = 'n4med'; end $$`)
			return err
		}),
	}, &schedule.Options{Logger: w.log})
	require.NoError(t, err)
	w.until(t, s.Run, `"error":"*errors.errorString"`, `"error":"panic of type string"`, "DB_UNIQUE_VIOLATION: sqlstate=23505 severity=ERROR constraint=n4med")
	trap(t, db, "caskeleton.job_run")
	w.until(t, s.Run, "schedule store fails", trapped)
	w.silent(t)
}

func TestNothingOfTheOutbox(t *testing.T) {
	w := newWatch(t)
	db := w.open(t, postgres.Config{}, migrations.Core(), migrations.OutboxStorage(), migrations.OutboxPolling())
	_, err := pgoutbox.Premake(t.Context(), w.dsn, 2)
	require.NoError(t, err)
	ob, err := outbox.New(pgoutbox.New(db), nil)
	require.NoError(t, err)
	runner := w.runner(t, db)
	record := func(ctx context.Context, aggregate string) error {
		return runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
			return ob.Append(ctx, t, outbox.Event{
				Type: "order.placed", AggregateType: "order", AggregateID: aggregate, Payload: []byte(canary), Headers: map[string]string{canary: canary},
			})
		})
	}
	for _, a := range []string{"refused", "panicked", "down"} {
		require.NoError(t, record(w.ctx, a))
	}
	relay, err := outbox.NewRelay(pgoutbox.New(db), publisher(func(run []outbox.Event) (int, error) {
		switch run[0].AggregateID {
		case "refused":
			return 0, fmt.Errorf("%s: %w", canary, errors.New(canary))
		case "panicked":
			panic(canary)
		}
		return 0, fmt.Errorf("%s: %w", canary, outbox.ErrBrokerDown)
	}), &outbox.RelayOptions{Meter: w.meter, Logger: w.log, PollInterval: tick, BackoffMax: time.Second})
	require.NoError(t, err)
	w.until(t, relay.Run, "outbox event not published", "outbox publisher panicked", `"error":"outbox: the broker is down"`)
	trap(t, db, "caskeleton.outbox_lane")
	w.until(t, relay.Run, "outbox store fails", trapped)
	w.answer(t, func(ctx context.Context) error { return record(ctx, "new") })
	w.silent(t)
	require.Contains(t, w.metrics(t), "outbox.failed")
	var kept int
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from caskeleton.outbox_lane where last_error like '%c4nary%'`).Scan(&kept))
	require.Zero(t, kept, "operators read it")
}

type publisher func(run []outbox.Event) (int, error)

func (p publisher) Publish(_ context.Context, run []outbox.Event) (int, error) { return p(run) }

func TestNothingOfTheInbox(t *testing.T) {
	w := newWatch(t)
	db := w.open(t, postgres.Config{}, migrations.Inbox())
	in, err := inbox.New(pginbox.New(db), w.runner(t, db), "shipping", &inbox.Options{MaxAttempts: 1, Meter: w.meter, Logger: w.log})
	require.NoError(t, err)
	message := func(id string) inbox.Message {
		return inbox.Message{
			ID: id, Deliveries: 1, Type: canary, AggregateType: canary, AggregateID: canary, Payload: []byte(canary), Headers: map[string]string{canary: canary},
		}
	}
	for id, effect := range map[string]func(ctx context.Context, t *tx.Tx) error{
		"fails":  func(context.Context, *tx.Tx) error { return errors.New(canary) },
		"panics": func(context.Context, *tx.Tx) error { panic(canary) },
		"server": func(ctx context.Context, t *tx.Tx) error { return run(ctx, t, `select $1::text::int8`, []any{canary}) },
		"":       nil,
	} {
		_, err := in.Handle(w.ctx, message(id), effect)
		require.Equal(t, id == "", err != nil)
	}
	trap(t, db, "caskeleton.inbox_message")
	w.answer(t, func(ctx context.Context) error {
		_, err := in.Handle(ctx, message("trapped"), func(context.Context, *tx.Tx) error { return nil })
		return err
	})
	w.silent(t, "inbox message parked", "inbox message not run", trapped, "DB_INVALID_DATA: sqlstate=22P02", `"error":"panic of type string"`)
	require.Contains(t, w.metrics(t), "inbox.")
}

func TestNothingOfIdempotency(t *testing.T) {
	w := newWatch(t)
	db := w.open(t, postgres.Config{}, migrations.Idempotency())
	guard := w.guard(t, db)
	reaper, err := idempotency.NewReaper(guard, &idempotency.ReaperOptions{Interval: tick})
	require.NoError(t, err)
	call := w.serve(t, func(m *httpapi.Mux) {
		m.Handle("POST /pay", httpapi.External(guard, httpapi.Policy{Logger: w.log})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "" {
				trap(t, db, "caskeleton.idempotency_record") // its end cannot be recorded
			}
			panic(canary)
		})))
	})
	pay := func(path, key string) {
		call("POST", path, canary, "Content-Type", "application/json", "Idempotency-Key", key)
	}
	pay("/pay", canary)
	pay("/pay?"+canary, canary+"2")
	pay("/pay", canary+"3") // cannot be claimed
	w.until(t, reaper.Run, "not all reaped")
	w.silent(t, "handler panicked", "idempotency record not abandoned", trapped)
	require.Contains(t, w.metrics(t), "idempotency")
}
