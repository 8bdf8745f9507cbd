package config

import (
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	minLifetime  = 30 * time.Second
	minSecret    = 32                               // bytes; the output size of the HMAC's SHA-256
	maxPGTimeout = math.MaxInt32 * time.Millisecond // PostgreSQL counts milliseconds in 32 bits
)

// check applies the rules that one type alone cannot express. A rule about a key that has a problem already is left out.
func (l *loader) check(c *Config) {
	l.rule(validAddr(c.HTTP.Addr), "is not host:port", "write a host and a port from 0 to 65535, as in 127.0.0.1:8080", "http.addr")
	l.checkPool(c.DB)
	l.checkTimeouts(c.DB)

	i := c.Idempotency
	l.rule(i.Lease > 0, "must be above 0", "write how long a request may own its key, as in 30s", "idempotency.lease")
	l.rule(i.Expiry > i.Lease, "must be longer than APP_IDEMPOTENCY_LEASE ("+formatDuration(i.Lease)+")", "an answer must outlive its request: write a longer time, as in 24h", "idempotency.expiry", "idempotency.lease")
	l.rule(i.InlineLimit > 0, "must be above 0", "write a size, as in 8KiB", "idempotency.inline_limit")
	for _, k := range l.filled("idempotency.keys.<version>") {
		n := len(value[Secret](l, k.Path).Reveal())
		l.rule(n >= minSecret, "is "+strconv.Itoa(n)+" bytes long, and 32 is the least", "use the output of: openssl rand -base64 32", k.Path)
	}

	if c.Profile == Prod {
		l.rule(c.DB.URL.IsSet(), "must be set in the prod profile", "set it, or DATABASE_URL_FILE to the path of a file that holds it", "db.url")
		l.rule(len(i.Keys) > 0, "must be set in the prod profile, for one version at least", "set APP_IDEMPOTENCY_KEY_V1 to the output of: openssl rand -base64 32", "idempotency.keys.<version>")
	}
}

func (l *loader) checkPool(db DB) {
	const dsn = "write postgres://user@host:5432/database, or host=... user=... dbname=..."
	l.rule(!db.URL.IsSet() || validDSN(db.URL.Reveal()), "is not a PostgreSQL connection string", dsn, "db.url")
	l.rule(!db.MigrationDSN.IsSet() || validDSN(db.MigrationDSN.Reveal()), "is not a PostgreSQL connection string", dsn, "db.migration_dsn")
	conns := value[int64](l, "db.max_conns")
	l.rule(conns >= 1 && conns <= math.MaxInt32, "must be between 1 and 2147483647", "write how many connections this instance may open, as in 10", "db.max_conns")
	l.rule(db.MaxLifetime >= minLifetime, "must be at least 30s", "connections would be replaced all the time: write 30s or more", "db.max_lifetime")
	l.rule(db.IdleTime > 0, "must be above 0", "write how long an unused connection is kept, as in 5m", "db.idle_time")
	l.rule(db.IdleTime+time.Second <= db.MaxLifetime, "must be at least 1s shorter than APP_DB_MAX_LIFETIME ("+formatDuration(db.MaxLifetime)+")", "shorten it, or lengthen the other", "db.idle_time", "db.max_lifetime")
}

func (l *loader) checkTimeouts(db DB) {
	l.rule(db.AcquireTimeout > 0, "must be above 0", "write the longest wait for a connection, as in 5s", "db.acquire_timeout")
	for _, path := range []string{"db.statement_timeout", "db.lock_timeout", "db.idle_tx_timeout"} {
		d := value[time.Duration](l, path)
		l.rule(d >= time.Millisecond && d <= maxPGTimeout, "must be between 1ms and "+formatDuration(maxPGTimeout), "PostgreSQL counts whole milliseconds, and takes 0 for no limit: write a time in that range", path)
	}
	// A lock wait is part of its statement: the other way round, statement_timeout would hide which of the two it was.
	l.rule(db.LockTimeout < db.StatementTimeout, "must be shorter than APP_DB_STATEMENT_TIMEOUT ("+formatDuration(db.StatementTimeout)+")", "shorten it, or lengthen the other", "db.lock_timeout", "db.statement_timeout")
	l.rule(db.AcquireTimeout <= db.StatementTimeout, "must not be longer than APP_DB_STATEMENT_TIMEOUT ("+formatDuration(db.StatementTimeout)+")", "no single statement holds a connection for longer: shorten it, or lengthen the other", "db.acquire_timeout", "db.statement_timeout")
	// InNew waits for a second connection while its outer transaction sits idle.
	l.rule(db.AcquireTimeout < db.IdleTxTimeout, "must be shorter than APP_DB_IDLE_TX_TIMEOUT ("+formatDuration(db.IdleTxTimeout)+")", "PostgreSQL would end a transaction that waits for a second connection: shorten it, or lengthen the other", "db.acquire_timeout", "db.idle_tx_timeout")
}

// rule reports the key at path unless ok. others are the paths that ok depends on as well.
func (l *loader) rule(ok bool, problem, fix, path string, others ...string) {
	for _, p := range append(others, path) {
		ok = ok || l.broken[p]
	}
	if ok {
		return
	}
	k, known := byPath(path)
	if !known { // a pattern of which nothing is set
		k = patternAt(path)
	}
	p := Problem{Key: k.Env, Path: k.Path, Where: l.origins[path].where, Problem: problem, Fix: fix}
	if !k.Secret {
		p.Value = l.merged.String(path)
	}
	l.problems = append(l.problems, p)
}

func validAddr(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil || !digits(port) {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// validDSN finds gross mistakes only; the driver has the last word, when it connects.
func validDSN(dsn string) bool {
	scheme, _, isURL := strings.Cut(dsn, "://")
	return isURL && (scheme == "postgres" || scheme == "postgresql") || !isURL && strings.Contains(dsn, "=")
}
