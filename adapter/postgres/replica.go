package postgres

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"caskeleton.dev/fault"
)

// lagEvery is how often the replica's lag is asked for.
const lagEvery = time.Second

// lagQuery is how far the replica is behind, in seconds. The age of what was replayed last says nothing where the primary is idle, so it
// counts only while something received waits to be replayed, or nothing is received any more. A server that is no replica (any more) has
// no lag. One that has replayed nothing since it started is as old as its start at least.
const lagQuery = `select case
	when not pg_catalog.pg_is_in_recovery() then 0
	when pg_catalog.pg_last_wal_receive_lsn() <= pg_catalog.pg_last_wal_replay_lsn() and exists (select from pg_catalog.pg_stat_wal_receiver) then 0
	else greatest(0, extract(epoch from pg_catalog.clock_timestamp()
		- coalesce(pg_catalog.pg_last_xact_replay_timestamp(), pg_catalog.pg_postmaster_start_time())))
end::float8`

// ReplicaState is what is known of the read replica at one moment.
type ReplicaState struct {
	Serving bool          // reads that ask for the replica get it; else they get the primary
	Reason  string        // why not: "starting", "unreachable" or "lagging"; empty where it serves
	Lag     time.Duration // as last asked; negative where it is not known
}

// replica is the optional read pool, and who watches it. Its methods may be called on nil: there is none.
type replica struct {
	cfg   Config // of the read pool
	o     Options
	log   *slog.Logger
	db    atomic.Pointer[DB] // nil until it was reached once
	state atomic.Pointer[ReplicaState]
	gauge metric.Registration
	watch sync.WaitGroup
}

// newReplica begins to watch until ctx ends. A replica that cannot be reached is no reason not to start.
func newReplica(ctx context.Context, cfg Config, o Options, log *slog.Logger) (*replica, error) {
	cfg.DSN, cfg.ReadDSN = cfg.ReadDSN, ""
	r := &replica{cfg: cfg, o: o, log: log}
	r.state.Store(&ReplicaState{Reason: "starting", Lag: -1})
	var err error
	if r.gauge, err = newLagGauge(o.Meter, r.state.Load); err != nil {
		return nil, err
	}
	r.watch.Go(func() {
		tick := time.NewTicker(lagEvery)
		defer tick.Stop()
		for {
			r.look(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return r, nil
}

// look asks for the lag, and decides whether the replica serves.
func (r *replica) look(ctx context.Context) {
	lag, err := r.ask(ctx)
	switch {
	case errors.Is(err, fault.DBPoolExhausted): // busy, which is no reason to send its load to the primary
	case err != nil && ctx.Err() == nil:
		r.become(ctx, ReplicaState{Reason: "unreachable", Lag: -1}, err)
	case err == nil && lag > r.cfg.MaxReplicaLag:
		r.become(ctx, ReplicaState{Reason: "lagging", Lag: lag}, nil)
	case err == nil:
		r.become(ctx, ReplicaState{Serving: true, Lag: lag}, nil)
	}
}

func (r *replica) ask(ctx context.Context) (time.Duration, error) {
	db := r.db.Load()
	if db == nil {
		var err error
		if db, err = open(ctx, r.cfg, r.o, route{standby: true}); err != nil {
			return 0, err
		}
		r.db.Store(db)
	}
	var seconds float64
	err := db.QueryRow(ctx, lagQuery).Scan(&seconds)
	return time.Duration(seconds * float64(time.Second)), err
}

// become stores what is known now, and logs a change of who serves.
func (r *replica) become(ctx context.Context, s ReplicaState, cause error) {
	was := r.state.Swap(&s)
	switch {
	case s.Serving && !was.Serving:
		r.log.InfoContext(ctx, "reads go to the replica", "lag", s.Lag)
	case s.Reason != was.Reason:
		attrs := []any{"reason", s.Reason, "max_lag", r.cfg.MaxReplicaLag, "error", fault.Reason(cause)}
		if s.Lag >= 0 { // known
			attrs = append(attrs, "lag", s.Lag)
		}
		r.log.WarnContext(ctx, "reads go to the primary instead of the replica", attrs...)
	}
}

// serving returns the read pool where reads may go there now, else nil.
func (r *replica) serving() *DB {
	if r == nil || !r.state.Load().Serving {
		return nil
	}
	return r.db.Load()
}

// close waits for the watch, whose context has ended, and closes the pool.
func (r *replica) close(ctx context.Context) error {
	if r == nil {
		return nil
	}
	r.watch.Wait()
	var err error
	if db := r.db.Load(); db != nil {
		err = db.Close(ctx)
	}
	return errors.Join(err, r.gauge.Unregister())
}

// Replica returns what is known of the read replica, false where none is configured.
func (db *DB) Replica() (ReplicaState, bool) {
	if db.replica == nil {
		return ReplicaState{}, false
	}
	return *db.replica.state.Load(), true
}
