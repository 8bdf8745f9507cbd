package migrations

import (
	"context"
	"database/sql"
	"hash/fnv"
	"log/slog"
	"strconv"
	"time"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
)

// lockSpace is the first key of the kit's advisory locks: "cask" in ASCII. The second is the stream's.
const lockSpace int32 = 0x6361736b

const (
	retryPause    = 300 * time.Millisecond // at most, between two tries
	unlockTimeout = 5 * time.Second
)

func lockKey(stream string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(stream))
	return int32(h.Sum32()) //nolint:gosec // the bits matter, not the number
}

// lock polls for the stream's session lock. A session that blocked on it would hold a snapshot that the holder's CREATE INDEX
// CONCURRENTLY waits for: a deadlock.
func (m *Migrator) lock(ctx context.Context, db *sql.DB, stream string) error {
	deadline := time.NewTimer(m.opts.LockTimeout)
	defer deadline.Stop()
	for waited := false; ; waited = true {
		var ok bool
		if err := db.QueryRowContext(ctx, `select pg_catalog.pg_try_advisory_lock($1, $2)`, lockSpace, lockKey(stream)).Scan(&ok); err != nil {
			return fault.Textf("migrations: stream %s: take the migration lock: %w", stream, told(err))
		}
		if ok {
			return nil
		}
		if !waited {
			m.opts.Logger.InfoContext(ctx, "waiting for another migrator", slog.String("stream", stream))
		}
		select {
		case <-time.After(backoff.Jitter(retryPause, 2)):
		case <-deadline.C:
			return fault.Textf("migrations: stream %s: %w: waited %s for %s: find out in pg_stat_activity whether it still works, then run again",
				stream, ErrLocked, m.opts.LockTimeout, lockHolder(ctx, db, stream))
		case <-ctx.Done():
			return fault.Textf("migrations: stream %s: waiting for the migration lock: %w: %w", stream, ctx.Err(), context.Cause(ctx))
		}
	}
}

func lockHolder(ctx context.Context, db *sql.DB, stream string) string {
	var pid int32
	err := db.QueryRowContext(ctx, `select l.pid from pg_catalog.pg_locks l
		join pg_catalog.pg_database d on d.oid = l.database and d.datname = pg_catalog.current_database()
		where l.locktype = 'advisory' and l.objsubid = 2 and l.granted
		and l.classid::bigint = $1::bigint and l.objid::bigint = $2::bigint`, uint32(lockSpace), uint32(lockKey(stream))).Scan(&pid) //nolint:gosec // pg_locks shows the keys unsigned
	if err != nil {
		return "a session that has just ended"
	}
	return "the backend with pid " + strconv.Itoa(int(pid))
}

// unlock releases the lock. The caller closes the connection whatever the outcome, and with it goes a lock that is left.
func (m *Migrator) unlock(ctx context.Context, db *sql.DB, stream string) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	var ok bool
	err := db.QueryRowContext(detached, `select pg_catalog.pg_advisory_unlock($1, $2)`, lockSpace, lockKey(stream)).Scan(&ok)
	switch {
	case err != nil:
		m.opts.Logger.WarnContext(ctx, "migration session lost, its lock ends with it", slog.String("stream", stream), slog.String("error", fault.Reason(told(err))))
	case !ok:
		m.opts.Logger.ErrorContext(ctx, "migration lock was not held at its release: a file released it", slog.String("stream", stream))
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(postgres.Millis(d), 10) }
