package intlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/intlock"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

// java is a JdbcLockRegistry of Spring Integration 7.0: the statements of its DefaultLockRepository, in transactions of their own.
type java struct {
	conn   *pgx.Conn
	client string
	skew   time.Duration // of the node's clock
}

func newJava(t *testing.T, dsn, client string) *java {
	t.Helper()
	conn := pgtest.Connect(t, dsn)
	_, err := conn.Exec(t.Context(), "set search_path = public; set timezone = 'Asia/Seoul'")
	require.NoError(t, err)
	return &java{conn: conn, client: client}
}

// now is LocalDateTime.now(ZoneOffset.UTC).
func (j *java) now() time.Time { return time.Now().UTC().Add(j.skew) }

func (j *java) update(t *testing.T, sql string, args ...any) int64 {
	t.Helper()
	tag, err := j.conn.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
	return tag.RowsAffected()
}

// acquire is acquire(lock, ttl) for a minute. It tells how it ended: by which statement, or by a unique violation.
func (j *java) acquire(t *testing.T, k lock.Key) string {
	t.Helper()
	region, lockKey, err := intlock.RowOf(k)
	require.NoError(t, err)
	tx, err := j.conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	require.NoError(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // it has ended
	tag, err := tx.Exec(t.Context(), `UPDATE INT_LOCK SET CLIENT_ID=$1, EXPIRED_AFTER=$2 WHERE REGION=$3 AND LOCK_KEY=$4 AND (CLIENT_ID=$5 OR EXPIRED_AFTER<$6)`,
		j.client, j.now().Add(time.Minute), region, lockKey, j.client, j.now())
	require.NoError(t, err)
	if tag.RowsAffected() > 0 {
		require.NoError(t, tx.Commit(t.Context()))
		return "updated"
	}
	_, err = tx.Exec(t.Context(), `INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES ($1, $2, $3, $4, $5)`,
		region, lockKey, j.client, j.now(), j.now().Add(time.Minute))
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == pgerrcode.UniqueViolation { // DataIntegrityViolationException
		return "refused"
	}
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	return "inserted"
}

func (j *java) renew(t *testing.T, k lock.Key, ttl time.Duration) bool {
	t.Helper()
	region, lockKey, err := intlock.RowOf(k)
	require.NoError(t, err)
	return j.update(t, `UPDATE INT_LOCK SET EXPIRED_AFTER=$1 WHERE REGION=$2 AND LOCK_KEY=$3 AND CLIENT_ID=$4`, j.now().Add(ttl), region, lockKey, j.client) > 0
}

func (j *java) delete(t *testing.T, k lock.Key) bool {
	t.Helper()
	region, lockKey, err := intlock.RowOf(k)
	require.NoError(t, err)
	return j.update(t, `DELETE FROM INT_LOCK WHERE REGION=$1 AND LOCK_KEY=$2 AND CLIENT_ID=$3`, region, lockKey, j.client) > 0
}

const (
	client = "0b7a6a4e-5f0e-4b3f-9d43-6a1f3d1f6c11"
	other  = "f3f0b2f7-93c4-4b0e-8a26-2f9f1c1f9b22"
)

func TestJavaHolds(t *testing.T) {
	dsn := pgtest.DSN(t)
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			refill(t, dsn, layout70)
			g, j, k := newNode(t, dsn, mode), newJava(t, dsn, client), key("order:42")
			require.Equal(t, "inserted", j.acquire(t, k))
			left := g.refused(t, k).Left
			require.Greater(t, left, 30*time.Second)
			require.LessOrEqual(t, left, time.Minute)
			stranger := newToken()
			g.releases(t, k, stranger, lock.Lost)
			renewed, err := g.Renew(t.Context(), k, stranger, time.Minute)
			require.NoError(t, err)
			require.False(t, renewed)

			require.True(t, j.renew(t, k, time.Hour), "nothing has touched its row")
			require.Greater(t, g.refused(t, k).Left, 30*time.Minute, "the holder's lease counts")
			require.Equal(t, "updated", j.acquire(t, k), "it is reentrant")
			require.True(t, j.delete(t, k))
			g.releases(t, k, g.acquires(t, k, time.Minute), lock.Released)

			require.Equal(t, "inserted", j.acquire(t, k))
			created := get[time.Time](t, g, "select created_date from public.int_lock")
			require.NoError(t, g.expire(t.Context(), k), "it crashed")
			token := g.acquires(t, k, time.Minute)
			require.Equal(t, created, get[time.Time](t, g, "select created_date from public.int_lock"), "Spring keeps it at a take-over")
			require.False(t, j.renew(t, k, time.Minute))
			require.False(t, j.delete(t, k), "a stale release, which Spring reports")
			require.True(t, g.refused(t, k).Held, "the row is the next holder's")
			g.releases(t, k, token, lock.Released)
		})
	}
}

func TestGoHolds(t *testing.T) {
	dsn := pgtest.DSN(t)
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			refill(t, dsn, layout70)
			g, j, k := newNode(t, dsn, mode), newJava(t, dsn, client), key("order:42")
			token := g.acquires(t, k, time.Minute)
			require.Equal(t, "refused", j.acquire(t, k), "0 rows, and a unique violation")
			require.False(t, j.renew(t, k, time.Minute))
			require.False(t, j.delete(t, k))
			renewed, err := g.Renew(t.Context(), k, token, 2*time.Minute)
			require.NoError(t, err)
			require.True(t, renewed, "nothing has touched our row")
			g.releases(t, k, token, lock.Released)
			require.Equal(t, "inserted", j.acquire(t, k))
			require.True(t, j.delete(t, k))

			token = g.acquires(t, k, time.Minute)
			require.NoError(t, g.expire(t.Context(), k), "we crashed")
			require.Equal(t, "updated", j.acquire(t, k))
			g.releases(t, k, token, lock.Lost)
			renewed, err = g.Renew(t.Context(), k, token, time.Minute)
			require.NoError(t, err)
			require.False(t, renewed)
			require.Equal(t, "refused", newJava(t, dsn, other).acquire(t, k), "a stale release leaves the row alone")
			require.True(t, j.delete(t, k))
		})
	}
}

// A Go service waits for a Java one, to its release or else to the end of its lease.
func TestWaitingForJava(t *testing.T) {
	dsn := database(t, layout70)
	g, j, k := newNode(t, dsn, ""), newJava(t, dsn, client), key("order:42")
	locker, err := lock.New(g, nil)
	require.NoError(t, err)
	patient := &lock.AcquireOptions{Wait: time.Minute, Lease: time.Minute}
	require.Equal(t, "inserted", j.acquire(t, k))
	require.True(t, j.renew(t, k, 500*time.Millisecond))
	end := get[time.Time](t, g, "select expired_after from public.int_lock")
	lease, err := locker.Acquire(t.Context(), k.Name, patient)
	require.NoError(t, err)
	require.False(t, get[time.Time](t, g, "select clock_timestamp() at time zone 'UTC'").Before(end), "its lease had not passed")
	require.Equal(t, "refused", j.acquire(t, k))
	require.NoError(t, lease.Release(t.Context()))

	require.Equal(t, "inserted", j.acquire(t, k))
	_, err = locker.Acquire(t.Context(), k.Name, &lock.AcquireOptions{Wait: 150 * time.Millisecond})
	require.ErrorIs(t, err, fault.LockAcquisitionTimeout)
	got := make(chan error, 1)
	go func() {
		lease, err := locker.Acquire(t.Context(), k.Name, patient)
		if err == nil {
			err = lease.Release(t.Context())
		}
		got <- err
	}()
	require.True(t, j.delete(t, k))
	require.NoError(t, <-got)
}

func TestRegionsAndKeysAreApart(t *testing.T) {
	dsn := database(t, layout70)
	g, j := newNode(t, dsn, ""), newJava(t, dsn, client)
	require.Equal(t, "inserted", j.acquire(t, lock.Key{Region: "billing", Name: "a"}))
	for _, k := range []lock.Key{{Region: "DEFAULT", Name: "a"}, {Region: "billing", Name: "b"}} {
		g.releases(t, k, g.acquires(t, k, time.Minute), lock.Released)
	}
	require.True(t, g.refused(t, lock.Key{Region: "billing", Name: "a"}).Held)
}

// A Java node whose clock is wrong takes over early or late, as it does among its own kind. What we write is the database's time in any case.
func TestOurTimesAreTheDatabases(t *testing.T) {
	dsn := database(t, layout70+`; do $$ begin execute format('alter database %I set timezone = %L', current_database(), 'Pacific/Kiritimati'); end $$`)
	g, k := newNode(t, dsn, ""), key("k")
	before := get[time.Time](t, g, "select clock_timestamp() at time zone 'UTC'")
	token := g.acquires(t, k, time.Hour)
	after := get[time.Time](t, g, "select clock_timestamp() at time zone 'UTC'")
	for column, lease := range map[string]time.Duration{"created_date": 0, "expired_after": time.Hour} {
		at := get[time.Time](t, g, "select "+column+" from public.int_lock")
		require.False(t, at.Before(before.Add(lease)), column)
		require.False(t, at.After(after.Add(lease)), column)
	}
	require.InDelta(t, time.Hour, g.refused(t, k).Left, float64(time.Minute))
	g.releases(t, k, token, lock.Released)

	slow := newJava(t, dsn, client)
	slow.skew = -2 * time.Minute
	require.Equal(t, "inserted", slow.acquire(t, k))
	token = g.acquires(t, k, time.Minute)
	require.Equal(t, "refused", slow.acquire(t, k))
	g.releases(t, k, token, lock.Released)
}
