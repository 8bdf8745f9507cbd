package migrations

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"caskeleton.dev/adapter/postgres"
)

// AheadPolicy says what a binary does with a database that has versions above its own, as after a rollback of the binary.
type AheadPolicy int

const (
	// AheadStart goes on and says so in the log: within one release of each other, schemas are compatible.
	AheadStart AheadPolicy = iota
	// AheadRefuse makes Up and Verify return ErrAhead.
	AheadRefuse
)

// Options are what a Migrator can be told. Zero fields mean the default.
type Options struct {
	LockTimeout      time.Duration // how long Up waits, for each stream, for another instance to finish: 60 s
	TableLockTimeout time.Duration // lock_timeout of the statements in a transaction: 5 s. A queue behind a waiting DDL stops the service
	Ahead            AheadPolicy   // AheadStart
	Logger           *slog.Logger  // slog.Default()
}

// Migrator migrates one database. It holds no connection between calls and may be used by several goroutines at once.
type Migrator struct {
	conn       *pgx.ConnConfig
	classifier *postgres.Classifier
	streams    []source
	opts       Options
	reported   sync.Map // the ahead versions that Verify has told of: a probe calls it for ever
}

// source is a stream with its checked files, in order.
type source struct {
	Stream
	files []file
}

func (s source) latest() int64 { return s.files[len(s.files)-1].version }

// New checks the streams and all their files, and does not connect. dsn must lead to the server itself ([ErrPooler]), but for
// Verify. Core is added if it is left out and runs first in any case; the others run in the order given.
func New(dsn string, streams []Stream, o *Options) (*Migrator, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.ParseConfig(dsn) // takes the pool_* settings out, which the server would refuse
	if err != nil {
		// pgx quotes the DSN in its error.
		return nil, errors.New("migrations: the DSN cannot be read: write it like postgres://user@host:5432/database, or as key=value pairs")
	}
	classifier, err := postgres.NewClassifier()
	if err != nil {
		return nil, err
	}
	m := &Migrator{conn: pool.ConnConfig, classifier: classifier, opts: opts}
	locks := map[int32]string{}
	for _, s := range coreFirst(streams) {
		if err := s.validate(); err != nil {
			return nil, err
		}
		switch other, taken := locks[lockKey(s.Name)]; {
		case taken && other == s.Name:
			return nil, fmt.Errorf("migrations: stream %s is given twice: remove one", s.Name)
		case taken:
			return nil, fmt.Errorf("migrations: streams %s and %s have the same lock key: rename one", other, s.Name)
		}
		locks[lockKey(s.Name)] = s.Name
		files, err := readFiles(s)
		if err != nil {
			return nil, err
		}
		m.streams = append(m.streams, source{Stream: s, files: files})
	}
	return m, nil
}

func coreFirst(streams []Stream) []Stream {
	isCore := func(s Stream) bool { return s.kit && s.Name == "core" }
	i := slices.IndexFunc(streams, isCore)
	if i < 0 {
		return slices.Concat([]Stream{Core()}, streams)
	}
	return slices.Concat(streams[i:i+1], streams[:i], streams[i+1:])
}

func (o *Options) withDefaults() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	if out.LockTimeout < 0 || out.TableLockTimeout < 0 {
		return out, errors.New("migrations: LockTimeout and TableLockTimeout must not be negative: leave them 0 for the default")
	}
	if out.TableLockTimeout > 0 && out.TableLockTimeout < time.Millisecond {
		return out, errors.New("migrations: TableLockTimeout must be at least 1 ms: PostgreSQL takes less for no limit")
	}
	if out.Ahead != AheadStart && out.Ahead != AheadRefuse {
		return out, fmt.Errorf("migrations: Ahead %d is not a policy: use AheadStart or AheadRefuse", out.Ahead)
	}
	if out.LockTimeout == 0 {
		out.LockTimeout = time.Minute
	}
	if out.TableLockTimeout == 0 {
		out.TableLockTimeout = 5 * time.Second
	}
	if out.Logger == nil {
		out.Logger = slog.Default()
	}
	return out, nil
}
