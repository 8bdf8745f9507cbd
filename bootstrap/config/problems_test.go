package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/bootstrap/config"
)

// Each case breaks one rule and must be told of that rule alone.
func TestVariableIsRefused(t *testing.T) {
	const (
		units = "write a number with a unit (ms, s, m or h), as in 250ms, 10s or 1h30m"
		bytes = "write B, KiB (1024 bytes), MiB or GiB, as in 8KiB"
		size  = "write a whole number with a unit (B, KiB, MiB or GiB), as in 8KiB"
		pg    = "is not between 1ms and 596h0m0s"
		addr  = "write a host and a port from 0 to 65535, as in 127.0.0.1:8080"
		dsn   = "write it as postgres://user:password@host:5432/database?sslmode=verify-full, with special characters percent-encoded (it is not shown here, since it may hold the password)"
		redis = "write redis://user:password@host:6379, or rediss:// for TLS"
		least = "use the output of: openssl rand -base64 32"
	)
	for _, tt := range []struct{ env, path, value, problem, fix string }{
		{"APP_PROFILE", "profile", "production", "is not one of the values that it may have", "write one of dev, prod"},
		{"APP_DB_EXEC_MODE", "db.exec_mode", "describe_exec", "is not one of the values that it may have", "write one of cache_statement, cache_describe, exec, simple_protocol"},
		{"APP_DB_MAX_CONNS", "db.max_conns", "ten", "is not a whole number", "write digits alone, as in 10"},
		{"APP_DB_MAX_CONNS", "db.max_conns", "1e1", "is not a whole number", "write digits alone, as in 10"},
		{"APP_DB_MAX_CONNS", "db.max_conns", "0", "must be above 0", "write a larger value, or leave it out for 10"},
		{"APP_DB_MAX_CONNS", "db.max_conns", "-1", "is less than 1", "set it to 1 or more, or leave it out for 10"},
		{"APP_DB_MAX_CONNS", "db.max_conns", "2147483648", "must be at most 2147483647", "write how many connections this instance may open, as in 10"},
		{"APP_DB_LOCK_TIMEOUT", "db.lock_timeout", "10", "has no unit", "write 10s for seconds, 10ms for milliseconds or 10m for minutes"},
		{"APP_DB_LOCK_TIMEOUT", "db.lock_timeout", "soon", "is not a duration", units},
		{"APP_DB_LOCK_TIMEOUT", "db.lock_timeout", "1 s", "is not a duration", units},
		{"APP_DB_LOCK_TIMEOUT", "db.lock_timeout", "-1s", "is negative", "write a duration without the sign"},
		{"APP_DB_LOCK_TIMEOUT", "db.lock_timeout", "+0", "has no unit", "write 0s"},
		{"APP_IDEMPOTENCY_EXPIRY", "idempotency.expiry", "7d", "is in days, which are not always 24 hours long", "write it in hours, as in 168h for a week"},
		{"APP_IDEMPOTENCY_INLINE_LIMIT", "idempotency.inline_limit", "8192", "has no unit", "write 8192B for bytes or 8192KiB for units of 1024 bytes"},
		{"APP_IDEMPOTENCY_INLINE_LIMIT", "idempotency.inline_limit", "8KB", "has a unit that is not known", bytes},
		{"APP_IDEMPOTENCY_INLINE_LIMIT", "idempotency.inline_limit", "8kib", "has a unit that is not known", bytes},
		{"APP_IDEMPOTENCY_INLINE_LIMIT", "idempotency.inline_limit", "1.5MiB", "is not a size", size},
		{"APP_IDEMPOTENCY_INLINE_LIMIT", "idempotency.inline_limit", "-1KiB", "is not a size", size},
		{"APP_IDEMPOTENCY_INLINE_LIMIT", "idempotency.inline_limit", "8589934592GiB", "is too large", "write a size below 8589934592GiB"},
		{"APP_IDEMPOTENCY_INLINE_LIMIT", "idempotency.inline_limit", "0B", "must be above 0", "write a size, as in 8KiB"},
		{"APP_IDEMPOTENCY_INLINE_LIMIT", "idempotency.inline_limit", "1048577B", "is more than 1MiB", "write a size, as in 8KiB"},
		{"APP_IDEMPOTENCY_LEASE", "idempotency.lease", "999us", "is less than 1ms", "write how long a request may own its key, as in 30s"},
		{"APP_IDEMPOTENCY_LEASE", "idempotency.lease", "0s", "is less than 1ms", "write how long a request may own its key, as in 30s"},
		{"APP_IDEMPOTENCY_EXPIRY", "idempotency.expiry", "30s", "must be longer than APP_IDEMPOTENCY_LEASE (30s)", "an answer must outlive its request: write a longer time, as in 24h"},
		{"APP_IDEMPOTENCY_REAPER_INTERVAL", "idempotency.reaper_interval", "0s", "must be above 0", "write a pause, as in 1m"},
		{"APP_IDEMPOTENCY_CURRENT", "idempotency.current", "V7", "names a version whose key is not set", "set APP_IDEMPOTENCY_KEY_<version> for it, or name one that is set"},
		{"APP_IDEMPOTENCY_KEY_V1", "idempotency.keys.v1", secretA[:31], "is 31 bytes long, and 32 is the least", least},
		{"APP_HTTP_ADDR", "http.addr", "8080", "is not host:port", addr},
		{"APP_HTTP_ADDR", "http.addr", "localhost:http", "is not host:port", addr},
		{"APP_HTTP_ADDR", "http.addr", "localhost:65536", "is not host:port", addr},
		{"DATABASE_URL", "db.url", "mysql://root:canary@h/d", "cannot be parsed", dsn},
		{"APP_MIGRATION_STREAMS", "db.migration_streams", "inbox,outbox", "does not name streams of the kit", "write all, or some of core,idempotency,outbox-storage,outbox-polling,inbox,lock"},
		{"APP_MIGRATION_DSN", "db.migration_dsn", "canary", "cannot be parsed", dsn},
		{"APP_READ_DSN", "db.read_dsn", "canary", "cannot be parsed", dsn},
		{"APP_DB_IDLE_TIME", "db.idle_time", "999us", "is less than 1ms", "set it to a minute or more, or leave it out for 5m"},
		{"APP_DB_IDLE_TIME", "db.idle_time", "0s", "must be above 0", "write a larger value, or leave it out for 5m"},
		{"APP_DB_IDLE_TIME", "db.idle_time", "29m59.5s", "is not at least 1s less than APP_DB_MAX_LIFETIME, 30m0s", "lower it, or raise APP_DB_MAX_LIFETIME"},
		{"APP_DB_STATEMENT_TIMEOUT", "db.statement_timeout", "600h", pg, "set a positive duration, or leave it out for 10s"},
		{"APP_DB_LOCK_TIMEOUT", "db.lock_timeout", "999us", pg, "set a positive duration, or leave it out for 3s"},
		{"APP_DB_LOCK_TIMEOUT", "db.lock_timeout", "0s", "must be above 0", "write a larger value, or leave it out for 3s"},
		{"APP_DB_IDLE_TX_TIMEOUT", "db.idle_tx_timeout", "600h", pg, "set a positive duration, or leave it out for 10s"},
		{"APP_READ_MAX_LAG", "db.read_max_lag", "0s", "must be above 0", "write a larger value, or leave it out for 10s"},
		{"APP_DB_LOCK_TIMEOUT", "db.lock_timeout", "10s", "is not less than APP_DB_STATEMENT_TIMEOUT, 10s, so it would never fire", "lower it, or raise APP_DB_STATEMENT_TIMEOUT"},
		{"APP_DB_ACQUIRE_TIMEOUT", "db.acquire_timeout", "0s", "must be above 0", "write a larger value, or leave it out for 5s"},
		{"APP_LOCK_WAIT_TIME", "lock.wait_time", "999us", "must be 1ms at least", "write a time, as in 3s"},
		{"APP_LOCK_LEASE_TTL", "lock.lease_ttl", "2999ms", "must not be shorter than APP_LOCK_WAIT_TIME (3s)", "write a longer time, as in 30s"},
		{"REDIS_URL", "redis.url", "canary:6379", "is not a Redis URL", redis},
		{"REDIS_URL", "redis.url", "http://canary", "is not a Redis URL", redis},
		{"REDIS_URL", "redis.url", "redis://", "is not a Redis URL", redis},
	} {
		t.Run(tt.env+"="+tt.value, func(t *testing.T) {
			want := config.Problem{Key: tt.env, Path: tt.path, Where: "environment", Value: tt.value, Problem: tt.problem, Fix: tt.fix}
			switch tt.env {
			case "DATABASE_URL", "APP_MIGRATION_DSN", "APP_READ_DSN", "REDIS_URL", "APP_IDEMPOTENCY_KEY_V1":
				want.Value = ""
			}
			got := problemsOf(t, config.Source{Environ: []string{tt.env + "=" + tt.value}})
			require.Empty(t, cmp.Diff(config.Problems{want}, got))
		})
	}
}

// The value just inside each bound is accepted.
func TestBoundsAreAccepted(t *testing.T) {
	for name, env := range map[string][]string{
		"lifetime":    {"APP_DB_MAX_LIFETIME=30s", "APP_DB_IDLE_TIME=29s"},
		"idle":        {"APP_DB_IDLE_TIME=29m59s"},
		"lock":        {"APP_DB_LOCK_TIMEOUT=9999ms"},
		"shortest":    {"APP_DB_LOCK_TIMEOUT=1ms"},
		"acquire":     {"APP_DB_ACQUIRE_TIMEOUT=10s", "APP_DB_IDLE_TX_TIMEOUT=10001ms"},
		"conns":       {"APP_DB_MAX_CONNS=1"},
		"most conns":  {"APP_DB_MAX_CONNS=2147483647"},
		"expiry":      {"APP_IDEMPOTENCY_LEASE=30s", "APP_IDEMPOTENCY_EXPIRY=31s"},
		"inline":      {"APP_IDEMPOTENCY_INLINE_LIMIT=1B"},
		"most inline": {"APP_IDEMPOTENCY_INLINE_LIMIT=1MiB"},
		"short lease": {"APP_IDEMPOTENCY_LEASE=1ms"},
		"secret":      {"APP_IDEMPOTENCY_KEY_V1=" + secretA[:32]},
		"free port":   {"APP_HTTP_ADDR=:0"},
		"lease":       {"APP_LOCK_WAIT_TIME=5s", "APP_LOCK_LEASE_TTL=5s"},
		"redis":       {"REDIS_URL=redis://user:p%40ss@h:6379/2"},
		"ipv6":        {"APP_HTTP_ADDR=[::1]:8080"},
		"two hosts":   {"DATABASE_URL=postgresql://a:5432,b:5433/d?target_session_attrs=read-write"},
		"keyword dsn": {"DATABASE_URL=host=/run/postgresql dbname=d"},
		"streams":     {"APP_MIGRATION_STREAMS=inbox, core"},
		"prod":        {"APP_PROFILE=prod", "DATABASE_URL=postgres://h/d?sslmode=verify-full", "APP_IDEMPOTENCY_KEY_V1=" + secretA},
		"local prod":  {"APP_PROFILE=prod", "DATABASE_URL=postgres://127.0.0.1/d?sslmode=disable", "APP_IDEMPOTENCY_KEY_V1=" + secretA},
		"dev":         {"DATABASE_URL=postgres://h/d?sslmode=disable"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load(config.Source{Environ: env})
			require.NoError(t, err)
		})
	}
}

const unverified = "lets the server go unverified, for one of its hosts at least, so that anybody in between can read and change what is sent"

// Rules about two keys, where breaking one alone is not possible with the other at its default.
func TestCrossFieldRules(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  []string
		want []string // key and problem
	}{
		{"lifetime", []string{"APP_DB_MAX_LIFETIME=29s", "APP_DB_IDLE_TIME=5s"}, []string{"APP_DB_MAX_LIFETIME is less than 30s"}},
		{"unlimited lifetime", []string{"APP_DB_MAX_LIFETIME=0s"}, []string{"APP_DB_MAX_LIFETIME must be above 0"}},
		{"acquire over statement", []string{"APP_DB_ACQUIRE_TIMEOUT=11s", "APP_DB_IDLE_TX_TIMEOUT=12s"}, []string{"APP_DB_ACQUIRE_TIMEOUT is more than APP_DB_STATEMENT_TIMEOUT, 10s, and no single statement holds a connection for longer"}},
		{"acquire at idle in transaction", []string{"APP_DB_IDLE_TX_TIMEOUT=5s"}, []string{"APP_DB_ACQUIRE_TIMEOUT is not less than APP_DB_IDLE_TX_TIMEOUT, 5s, so the server would end a transaction that waits for a second connection"}},
		{"prod", []string{"APP_PROFILE=prod"}, []string{"DATABASE_URL must be set in the prod profile", "APP_IDEMPOTENCY_KEY_<version> must be set in the prod profile, for one version at least"}},
		{"prod without TLS", []string{
			"APP_PROFILE=prod", "APP_IDEMPOTENCY_KEY_V1=" + secretA, "DATABASE_URL=postgres://h/d?sslmode=require", "APP_MIGRATION_DSN=host=h", "APP_READ_DSN=postgres://127.0.0.1,r/d?sslmode=prefer",
		}, []string{"DATABASE_URL " + unverified, "APP_READ_DSN " + unverified, "APP_MIGRATION_DSN " + unverified}},
		{"broken operand", []string{"APP_DB_STATEMENT_TIMEOUT=1", "APP_DB_LOCK_TIMEOUT=9h"}, []string{"APP_DB_STATEMENT_TIMEOUT has no unit"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range problemsOf(t, config.Source{Environ: tt.env}) {
				got = append(got, p.Key+" "+p.Problem)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestUnknownVariableIsRefused(t *testing.T) {
	const gone = "remove it; names that start with APP_ are kept for the documented ones"
	for name, fix := range map[string]string{
		"APP_DB_MAX_CONN":              "did you mean APP_DB_MAX_CONNS?",
		"APP_MAX_CONNS":                "did you mean APP_DB_MAX_CONNS?",
		"APP_DB_LOCKTIMEOUT":           "did you mean APP_DB_LOCK_TIMEOUT?",
		"APP_IDEMPOTENCY_KEYS_V2":      "did you mean APP_IDEMPOTENCY_KEY_V2?",
		"APP_DATABASE_URL":             "did you mean DATABASE_URL?",
		"APP_DB_MAX_CONNS_FILE":        "set APP_DB_MAX_CONNS itself: only a secret can come from a file",
		"APP_COMPLETELY_ELSE":          gone,
		"APP_IDEMPOTENCY_KEY_":         "did you mean APP_IDEMPOTENCY_KEY_<version>?",
		"APP_IDEMPOTENCY_KEY_FILE":     "did you mean APP_IDEMPOTENCY_KEY_<version>?",
		"APP_IDEMPOTENCY_KEY_FILEFILE": "",
		"APP_":                         gone,
	} {
		t.Run(name, func(t *testing.T) {
			if fix == "" { // a version like any other
				_, err := config.Load(config.Source{Environ: []string{name + "=" + secretA}})
				require.NoError(t, err)
				return
			}
			want := config.Problem{Key: name, Where: "environment", Problem: "is not a variable that is known", Fix: fix}
			require.Empty(t, cmp.Diff(config.Problems{want}, problemsOf(t, config.Source{Environ: []string{name + "=" + secretA}})))
		})
	}
}

func TestAllProblemsAtOnceInOrder(t *testing.T) {
	file := writeFile(t, "app.yaml", "db:\n  max_conn: 5\n  idle_time: 31m\nhttp:\n  addr: here\nprofile: test\n")
	env := []string{"APP_ZEBRA=1", "APP_DB_LOCK_TIMEOUT=10", "APP_DB_EXEC_MOD=exec", "DATABASE_URL_FILE=/nonexistent/canary"}
	want := "the configuration has 8 problems" +
		"\n  db.max_conn, " + file + ":2: is not a key that is known\n    fix: did you mean db.max_conns?" +
		"\n  APP_DB_EXEC_MOD, environment: is not a variable that is known\n    fix: did you mean APP_DB_EXEC_MODE?" +
		"\n  APP_ZEBRA, environment: is not a variable that is known\n    fix: remove it; names that start with APP_ are kept for the documented ones" +
		"\n  DATABASE_URL_FILE (db.url), secret file: names a file that cannot be used: no such file or directory" +
		"\n    fix: give the path of a file that this user can read and that holds the secret alone" +
		"\n  APP_PROFILE (profile) = \"test\", " + file + ":6: is not one of the values that it may have\n    fix: write one of dev, prod" +
		"\n  APP_DB_LOCK_TIMEOUT (db.lock_timeout) = \"10\", environment: has no unit\n    fix: write 10s for seconds, 10ms for milliseconds or 10m for minutes" +
		"\n  APP_HTTP_ADDR (http.addr) = \"here\", " + file + ":5: is not host:port\n    fix: write a host and a port from 0 to 65535, as in 127.0.0.1:8080" +
		"\n  APP_DB_IDLE_TIME (db.idle_time) = \"31m\", " + file + ":3: is not at least 1s less than APP_DB_MAX_LIFETIME, 30m0s\n    fix: lower it, or raise APP_DB_MAX_LIFETIME"
	for range 20 { // map order must not show
		require.Equal(t, want, problemsOf(t, config.Source{File: file, Environ: env}).Error())
	}
}
