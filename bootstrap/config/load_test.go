package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/bootstrap/config"
)

const (
	secretA = "canary-A-0123456789abcdefghijklmno" // 34 bytes
	secretB = "canary-B-0123456789abcdefghijklmno"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func problemsOf(t *testing.T, src config.Source) config.Problems {
	t.Helper()
	c, err := config.Load(src)
	require.Nil(t, c)
	var ps config.Problems
	require.ErrorAs(t, err, &ps)
	return ps
}

func TestDefaults(t *testing.T) {
	c, err := config.Load(config.Source{})
	require.NoError(t, err)
	want := &config.Config{
		Profile: config.Dev,
		HTTP:    config.HTTP{Addr: "127.0.0.1:8080"},
		DataDir: "./.data",
		DB: config.DB{
			MigrationStreams: "all", ReadMaxLag: 10 * time.Second, MaxConns: 10, MaxLifetime: 30 * time.Minute, IdleTime: 5 * time.Minute, AcquireTimeout: 5 * time.Second,
			StatementTimeout: 10 * time.Second, LockTimeout: 3 * time.Second, IdleTxTimeout: 10 * time.Second, ExecMode: "cache_statement",
		},
		Idempotency: config.Idempotency{Lease: 30 * time.Second, Expiry: 24 * time.Hour, InlineLimit: 8192, ReaperInterval: time.Minute, Keys: map[string]config.Secret{}},
		Lock:        config.Lock{WaitTime: 3 * time.Second, LeaseTTL: 30 * time.Second},
		Outbox:      config.Outbox{BatchSize: 100, RunSize: 20, PollInterval: time.Second, Lease: 30 * time.Second, BackoffBase: 100 * time.Millisecond, BackoffMax: time.Minute},
		Inbox:       config.Inbox{MaxAttempts: 10},
	}
	require.Empty(t, cmp.Diff(want, c, cmpopts.IgnoreUnexported(config.Config{})))
}

func TestPrecedence(t *testing.T) {
	file := writeFile(t, "app.yaml", "db:\n  max_conns: 20\n  idle_time: 4m\n")
	c, err := config.Load(config.Source{File: file, Environ: []string{"APP_DB_MAX_CONNS=30"}})
	require.NoError(t, err)
	require.EqualValues(t, 30, c.DB.MaxConns, "the environment is above the file")
	require.Equal(t, 4*time.Minute, c.DB.IdleTime, "the file is above the default")
	require.Equal(t, 3*time.Second, c.DB.LockTimeout, "what neither sets keeps its default")
}

// Every key of the list must reach a field, from the file and from its variable: a key that is listed and not bound would be accepted
// and ignored.
func TestEveryKeyIsBound(t *testing.T) {
	other := map[string]string{
		"APP_PROFILE": "prod", "APP_HTTP_ADDR": ":9090", "APP_DATA_DIR": "/var/lib/orders", "DATABASE_URL": "postgres://h/a", "APP_MIGRATION_DSN": "postgres://h/b", "APP_MIGRATION_STREAMS": "inbox",
		"APP_READ_DSN": "postgres://h/c?sslmode=verify-full", "APP_READ_MAX_LAG": "11s", "APP_DB_MAX_CONNS": "11", "APP_DB_MAX_LIFETIME": "31m", "APP_DB_IDLE_TIME": "6m", "APP_DB_ACQUIRE_TIMEOUT": "4s", "APP_DB_STATEMENT_TIMEOUT": "11s",
		"APP_DB_LOCK_TIMEOUT": "2s", "APP_DB_IDLE_TX_TIMEOUT": "12s", "APP_DB_EXEC_MODE": "exec", "APP_IDEMPOTENCY_LEASE": "31s", "APP_IDEMPOTENCY_EXPIRY": "25h",
		"APP_IDEMPOTENCY_INLINE_LIMIT": "9KiB", "APP_IDEMPOTENCY_REAPER_INTERVAL": "2m", "APP_IDEMPOTENCY_CURRENT": "V0", "APP_IDEMPOTENCY_KEY_<version>": secretB,
		"NATS_URL": "nats://h:4222", "APP_NATS_MONITOR_URL": "http://h:8222", "APP_OUTBOX_BATCH_SIZE": "50", "APP_OUTBOX_RUN_SIZE": "10",
		"APP_OUTBOX_POLL_INTERVAL": "2s", "APP_OUTBOX_LEASE": "31s", "APP_OUTBOX_BACKOFF_BASE": "200ms", "APP_OUTBOX_BACKOFF_MAX": "2m", "APP_INBOX_MAX_ATTEMPTS": "11",
		"APP_MULTI_INSTANCE_ENABLED": "true", "REDIS_URL": "rediss://h:6379/1", "APP_LOCK_WAIT_TIME": "4s", "APP_LOCK_LEASE_TTL": "31s",
	}
	base := []string{"DATABASE_URL=postgres://h/base?sslmode=verify-full", "APP_IDEMPOTENCY_KEY_V0=" + secretA} // what prod needs
	before, err := config.Load(config.Source{Environ: base})
	require.NoError(t, err)
	for _, k := range config.Keys() {
		t.Run(k.Env, func(t *testing.T) {
			text := other[k.Env]
			require.NotEmpty(t, text, "give this test another valid value of the key")
			name := strings.ReplaceAll(k.Env, "<version>", "V1")
			c, err := config.Load(config.Source{Environ: append(base, name+"="+text)})
			require.NoError(t, err)
			require.NotEmpty(t, cmp.Diff(before, c, cmpopts.IgnoreUnexported(config.Config{})), "the variable changed no field")

			path := strings.Split(strings.ReplaceAll(k.Path, "<version>", "v1"), ".")
			var yaml strings.Builder
			for i, part := range path {
				yaml.WriteString("\n" + strings.Repeat("  ", i) + part + ":")
			}
			yaml.WriteString(" " + `"` + text + `"` + "\n")
			env := base
			if k.Env == "DATABASE_URL" {
				env = base[1:]
			}
			fromFile, err := config.Load(config.Source{File: writeFile(t, "app.yaml", yaml.String()), Environ: env})
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(c, fromFile, cmpopts.IgnoreUnexported(config.Config{})), "the file and the variable must do the same")
		})
	}
}

func TestEmptyIsNotSet(t *testing.T) {
	file := writeFile(t, "app.yaml", "profile:\ndb:\n  idle_time: \"\"\n  url: null\nidempotency:\n")
	c, err := config.Load(config.Source{File: file, Environ: []string{"APP_DB_MAX_CONNS=", "DATABASE_URL=", "DATABASE_URL_FILE=", "APP_IDEMPOTENCY_KEY_V1="}})
	require.NoError(t, err)
	require.Equal(t, config.Dev, c.Profile)
	require.EqualValues(t, 10, c.DB.MaxConns)
	require.Equal(t, 5*time.Minute, c.DB.IdleTime)
	require.False(t, c.DB.URL.IsSet())
	require.Empty(t, c.Idempotency.Keys)
}

func TestEmptyFiles(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "comment": "# nothing yet\n", "marker": "---\n"} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load(config.Source{File: writeFile(t, "app.yaml", text)})
			require.NoError(t, err)
		})
	}
}

func TestOtherVariablesAreIgnored(t *testing.T) {
	_, err := config.Load(config.Source{Environ: []string{"HOME=/root", "MYAPP_X=1", "app_db_max_conns=x", "DATABASE_URLS=x", "NOEQUALS", "=odd"}})
	require.NoError(t, err)
}

func TestMigrationDSN(t *testing.T) {
	c, err := config.Load(config.Source{Environ: []string{"DATABASE_URL=postgres://runtime@h/d"}})
	require.NoError(t, err)
	require.Equal(t, "postgres://runtime@h/d", c.DB.Migration().Reveal(), "one role does both")
	c, err = config.Load(config.Source{Environ: []string{"DATABASE_URL=postgres://runtime@h/d", "APP_MIGRATION_DSN=host=h user=owner"}})
	require.NoError(t, err)
	require.Equal(t, "host=h user=owner", c.DB.Migration().Reveal())
}

func TestHighestVersionSigns(t *testing.T) {
	for want, versions := range map[string][]string{"v10": {"V9", "V10", "V2"}, "11": {"2", "11"}, "2026_02": {"2025_12", "2026_02"}, "": nil} {
		var env []string
		for _, v := range versions {
			env = append(env, "APP_IDEMPOTENCY_KEY_"+v+"="+secretA)
		}
		c, err := config.Load(config.Source{Environ: env})
		require.NoError(t, err)
		require.Equal(t, want, c.Idempotency.Current())
		require.Len(t, c.Idempotency.Keys, len(versions))
	}
}
