package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// MinVersion is the oldest major version of PostgreSQL that the kit runs on.
const MinVersion = 15

// Options are the optional arguments of [Open]. Zero fields mean the default.
type Options struct {
	Meter         metric.MeterProvider // nil means no metrics
	Logger        *slog.Logger         // gets discarded connections and unknown outcomes; nil means slog.Default()
	Contributions []Contribution       // codes for SQLSTATEs that the service raises itself
}

// DB is a bounded pool of connections to one primary, and perhaps another to a replica. Its Exec, Query and QueryRow autocommit; it is also
// the [tx.Driver] that a tx.Runner begins transactions with. Safe for concurrent use.
type DB struct {
	pool       *pgxpool.Pool
	cfg        Config
	route      route
	replica    *replica // nil where there is none
	classifier *Classifier
	metrics    *metrics
	log        *slog.Logger
	silence    time.Duration
	fresh      *pgx.ConnConfig // for connections beside the pool
	looking    chan struct{}   // a token a connection that asks for outcomes
	open       context.Context // ends with Close, and so do waits for a connection
	shut       context.CancelFunc
	closing    sync.Once
	drained    chan struct{}
}

var _ tx.Driver = (*DB)(nil)

// Open checks cfg, connects once, and refuses a server older than [MinVersion]. Its errors are a [*ConfigError], or translated like
// any other: DB_UNAVAILABLE where nobody answers, DB_ACCESS_DENIED where the server refuses the role. The caller closes the DB.
func Open(ctx context.Context, cfg Config, o *Options) (*DB, error) {
	if o == nil {
		o = &Options{}
	}
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	db, err := open(ctx, cfg, *o, route{})
	if err != nil || cfg.ReadDSN == "" {
		return db, err
	}
	if db.replica, err = newReplica(db.open, cfg, *o, db.log); err != nil {
		_ = db.Close(context.WithoutCancel(ctx)) // no connection is out, so it neither waits nor fails
		return nil, err
	}
	return db, nil
}

// open makes one pool, of a cfg that is valid and has no zero fields, and connects once.
func open(ctx context.Context, cfg Config, o Options, r route) (*DB, error) {
	classifier, err := NewClassifier(o.Contributions...)
	if err != nil {
		return nil, err
	}
	db := &DB{cfg: cfg, route: r, classifier: classifier, log: o.Logger, silence: silence, looking: make(chan struct{}, 4), drained: make(chan struct{})}
	db.open, db.shut = context.WithCancel(context.WithoutCancel(ctx))
	if db.log == nil {
		db.log = slog.Default()
	}
	if err = db.connect(ctx, o.Meter); MetPooler(err) {
		db.route.pooler = true
		err = db.connect(ctx, o.Meter)
	}
	if err != nil {
		db.shut()
		return nil, err
	}
	return db, nil
}

// connect makes the pool and tries it; on failure it leaves nothing open.
func (db *DB) connect(ctx context.Context, meter metric.MeterProvider) error {
	pc, err := poolConfig(db.cfg, db.route)
	if err != nil {
		return err
	}
	db.fresh = pc.ConnConfig.Copy()
	if db.pool, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		return db.classifier.Translate(ctx, "postgres.Open", err)
	}
	if db.metrics, err = newMetrics(meter, db.route.pool(), db.pool.Stat); err == nil {
		if err = db.check(ctx); err != nil {
			_ = db.metrics.gauges.Unregister() // err says more
		}
	}
	if err != nil {
		db.pool.Close() // no connection is out, so it does not wait
	}
	return err
}

// check pings the server and reads its version, which it announces on every connection.
func (db *DB) check(ctx context.Context) error {
	conn, err := db.acquire(ctx, "postgres.Open")
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := db.ping(ctx, conn, "postgres.Open"); err != nil {
		return err
	}
	if err := checkVersion(conn.Conn().PgConn().ParameterStatus("server_version")); err != nil || !db.route.pooler {
		return err
	}
	err = db.checkPooler(ctx, conn.Conn())
	if _, unusable := errors.AsType[*ConfigError](err); unusable {
		return err
	}
	return db.classifier.Translate(ctx, "postgres.Open", err)
}

func checkVersion(version string) error {
	var major int // "16.4 (Debian 16.4-1)" and "18beta1" both begin with it
	if _, err := fmt.Sscanf(version, "%d", &major); err != nil || major < MinVersion {
		return fault.Textf("postgres: the server is version %q; PostgreSQL %d or later is required", version, MinVersion)
	}
	return nil
}

// acquire takes a connection out of the pool, within AcquireTimeout. pgxpool's own verbs are not used: they wait as long as the
// caller's context lasts, and give the connection back before anyone can look at its state.
func (db *DB) acquire(ctx context.Context, op string) (*pgxpool.Conn, error) {
	if db.open.Err() != nil {
		return nil, fault.New(fault.DBPoolClosed, op, nil)
	}
	waiting, cancel := context.WithTimeout(ctx, db.cfg.AcquireTimeout)
	defer cancel()
	defer context.AfterFunc(db.open, cancel)() // pgxpool lets waiters wait on when it is closed
	start := time.Now()
	conn, err := db.pool.Acquire(waiting)
	db.metrics.waited(ctx, time.Since(start))
	if err == nil {
		return conn, nil
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, unusable := errors.AsType[*ConfigError](err)
	switch {
	case unusable:
		return nil, err
	case db.open.Err() != nil:
		return nil, fault.New(fault.DBPoolClosed, op, nil)
	case connecting:
		return nil, db.classifier.Translate(ctx, op, err)
	case endedBy(ctx, err):
		return nil, ended(ctx, op, err)
	case endedBy(waiting, err):
		db.metrics.wasExhausted(ctx)
		s := db.pool.Stat()
		return nil, fault.New(fault.DBPoolExhausted, op,
			fault.Textf("no connection became free within %s; %d of %d are in use", db.cfg.AcquireTimeout, s.AcquiredConns(), s.MaxConns()))
	}
	return nil, db.classifier.Translate(ctx, op, err)
}

// discard closes a connection whose server accepts no writes. It still has to be released.
func (db *DB) discard(ctx context.Context, conn *pgxpool.Conn) {
	db.log.WarnContext(ctx, "connection discarded, the server accepts no writes")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Conn().Close(ctx) // it is unwell; there is nobody to tell
}

// Ping reports whether the server answers.
func (db *DB) Ping(ctx context.Context) error {
	conn, err := db.acquire(ctx, "postgres.Ping")
	if err != nil {
		return err
	}
	defer conn.Release()
	return db.ping(ctx, conn, "postgres.Ping")
}

func (db *DB) ping(ctx context.Context, conn *pgxpool.Conn, op string) error {
	db.limit(conn.Conn().PgConn(), 1, db.cfg.StatementTimeout)
	return db.fail(ctx, conn, op, conn.Ping(ctx))
}

// Stat returns a snapshot of the pool.
func (db *DB) Stat() *pgxpool.Stat { return db.pool.Stat() }

// Close refuses new work with DB_POOL_CLOSED and waits until every connection has come back and is closed, or ctx ends: then it
// returns how many are still out. They close when they come back. Calling Close again waits again.
func (db *DB) Close(ctx context.Context) error {
	db.shut()
	db.closing.Do(func() {
		go func() {
			defer close(db.drained)
			db.pool.Close()
		}()
	})
	select {
	case <-db.drained:
	case <-ctx.Done():
		return fault.Textf("postgres.Close: %d connections are still in use: %w", db.pool.Stat().AcquiredConns(), ctx.Err())
	}
	return errors.Join(db.replica.close(ctx), db.metrics.gauges.Unregister())
}
