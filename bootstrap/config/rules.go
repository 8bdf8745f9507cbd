package config

import (
	"errors"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/idempotency"
)

// MinOutboxLease is the shortest lease of a relay: longer than one publish and the margin for clocks together.
const MinOutboxLease = 12 * time.Second

// check applies the rules that one type alone cannot express. A rule about a key that has a problem already is left out.
func (l *loader) check(c *Config) {
	l.rule(validAddr(c.HTTP.Addr), "is not host:port", "write a host and a port from 0 to 65535, as in 127.0.0.1:8080", "http.addr")
	l.checkDB(c.DB)

	i := c.Idempotency
	l.rule(i.Lease >= time.Millisecond, "is less than 1ms", "write how long a request may own its key, as in 30s", "idempotency.lease")
	l.rule(i.Expiry > i.Lease, "must be longer than APP_IDEMPOTENCY_LEASE ("+formatDuration(i.Lease)+")", "an answer must outlive its request: write a longer time, as in 24h", "idempotency.expiry", "idempotency.lease")
	l.rule(i.InlineLimit > 0, "must be above 0", "write a size, as in 8KiB", "idempotency.inline_limit")
	l.rule(i.InlineLimit <= idempotency.MaxInlineLimit, "is more than "+formatBytes(idempotency.MaxInlineLimit), "write a size, as in 8KiB", "idempotency.inline_limit")
	l.rule(i.ReaperInterval > 0, "must be above 0", "write a pause, as in 1m", "idempotency.reaper_interval")
	_, set := i.Keys[i.Current()]
	l.rule(i.CurrentVersion == "" || set, "names a version whose key is not set", "set APP_IDEMPOTENCY_KEY_<version> for it, or name one that is set", "idempotency.current")
	for _, k := range l.filled("idempotency.keys.<version>") {
		n := len(value[Secret](l, k.Path).Reveal())
		l.rule(n >= idempotency.MinSecret, "is "+strconv.Itoa(n)+" bytes long, and "+strconv.Itoa(idempotency.MinSecret)+" is the least", "use the output of: openssl rand -base64 32", k.Path)
	}

	redis := c.Redis.URL
	l.rule(!redis.IsSet() || validRedis(redis.Reveal()), "is not a Redis URL", "write redis://user:password@host:6379, or rediss:// for TLS", "redis.url")
	l.rule(c.Lock.WaitTime >= time.Millisecond, "must be 1ms at least", "write a time, as in 3s", "lock.wait_time")
	l.rule(c.Lock.LeaseTTL >= c.Lock.WaitTime, "must not be shorter than APP_LOCK_WAIT_TIME ("+formatDuration(c.Lock.WaitTime)+")", "write a longer time, as in 30s", "lock.lease_ttl", "lock.wait_time")

	o := c.Outbox
	l.rule(o.BatchSize >= 1 && o.BatchSize <= 10_000, "must be from 1 to 10000", "write a number, as in 100", "outbox.batch_size")
	l.rule(o.RunSize >= 1 && o.RunSize <= 10_000, "must be from 1 to 10000", "write a number, as in 20", "outbox.run_size")
	l.rule(o.PollInterval >= time.Millisecond, "must be 1ms at least", "write a time, as in 1s", "outbox.poll_interval")
	l.rule(o.Lease >= MinOutboxLease, "must be "+formatDuration(MinOutboxLease)+" at least", "a lease must outlast a publish: write a longer time, as in 30s", "outbox.lease")
	l.rule(o.BackoffBase >= time.Millisecond, "must be 1ms at least", "write a time, as in 100ms", "outbox.backoff_base")
	l.rule(o.BackoffMax >= o.BackoffBase, "must not be shorter than APP_OUTBOX_BACKOFF_BASE ("+formatDuration(o.BackoffBase)+")", "write a longer time, as in 1m", "outbox.backoff_max", "outbox.backoff_base")
	l.rule(c.Inbox.MaxAttempts >= 1 && c.Inbox.MaxAttempts <= 1_000_000, "must be from 1 to 1000000", "write a number, as in 10", "inbox.max_attempts")

	if c.Profile == Prod {
		l.rule(c.DB.URL.IsSet(), "must be set in the prod profile", "set it, or DATABASE_URL_FILE to the path of a file that holds it", "db.url")
		l.rule(len(i.Keys) > 0, "must be set in the prod profile, for one version at least", "set APP_IDEMPOTENCY_KEY_V1 to the output of: openssl rand -base64 32", "idempotency.keys.<version>")
	}
}

// poolKeys says which key gives which field of [postgres.Config].
var poolKeys = []struct{ field, path string }{
	{"DSN", "db.url"},
	{"ReadDSN", "db.read_dsn"},
	{"MaxReplicaLag", "db.read_max_lag"},
	{"MaxConns", "db.max_conns"},
	{"MaxLifetime", "db.max_lifetime"},
	{"IdleTime", "db.idle_time"},
	{"AcquireTimeout", "db.acquire_timeout"},
	{"StatementTimeout", "db.statement_timeout"},
	{"LockTimeout", "db.lock_timeout"},
	{"IdleTxTimeout", "db.idle_tx_timeout"},
	{"ExecMode", "db.exec_mode"},
}

// checkDB applies the pool's own rules, in the names that the operator knows.
func (l *loader) checkDB(db DB) {
	for _, pk := range poolKeys {
		k, _ := byPath(pk.path)
		switch v := l.values[pk.path]; v { // a field that is 0 would get its default
		case int64(0), time.Duration(0):
			l.refuse(k, l.merged.String(pk.path), "must be above 0", "write a larger value, or leave it out for "+k.Default)
		}
	}
	l.rule(value[int64](l, "db.max_conns") <= math.MaxInt32, "must be at most 2147483647", "write how many connections this instance may open, as in 10", "db.max_conns")
	_, err := db.Streams()
	l.rule(err == nil, "does not name streams of the kit", `write all, or some of `+strings.Join(streamNames(), ","), "db.migration_streams")
	for _, p := range poolProblems(db.Pool()) {
		if p.Field == "DSN" && !db.URL.IsSet() {
			continue // the embedded server's, or missing in the prod profile
		}
		l.poolRule(p, pathOf(p.Field))
	}
	for _, p := range poolProblems(postgres.Config{DSN: db.MigrationDSN.Reveal(), VerifyTLS: db.VerifyTLS}) {
		if db.MigrationDSN.IsSet() {
			l.poolRule(p, "db.migration_dsn")
		}
	}
}

func streamNames() []string {
	var names []string
	for _, s := range migrations.All() {
		names = append(names, s.Name)
	}
	return names
}

func poolProblems(c postgres.Config) []postgres.Problem {
	e, ok := errors.AsType[*postgres.ConfigError](c.Validate())
	if !ok {
		return nil
	}
	return e.Problems
}

func pathOf(field string) string {
	for _, pk := range poolKeys {
		if pk.field == field {
			return pk.path
		}
	}
	return ""
}

// poolRule reports what the pool refuses, of the key at path.
func (l *loader) poolRule(p postgres.Problem, path string) {
	if p.Other == "" {
		l.rule(false, p.Problem, p.Fix, path)
		return
	}
	other, _ := byPath(pathOf(p.Other))
	inKeys := strings.NewReplacer(p.Other, other.Env)
	l.rule(false, inKeys.Replace(p.Problem), inKeys.Replace(p.Fix), path, other.Path)
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

func validRedis(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "redis" || u.Scheme == "rediss") && u.Host != ""
}

func validAddr(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil || !digits(port) {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
