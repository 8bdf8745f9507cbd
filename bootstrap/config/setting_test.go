package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/bootstrap/config"
)

func TestSettingsTellWhereEachValueComesFrom(t *testing.T) {
	file := writeFile(t, "app.yaml", "db:\n  max_lifetime: 1800s\n  idle_time: 90s\nidempotency:\n  inline_limit: 16384B\n  keys:\n    v10: "+secretA+"\n")
	c, err := config.Load(config.Source{File: file, Environ: []string{
		"APP_DB_MAX_CONNS=20", "APP_MIGRATION_DSN=host=h", "APP_IDEMPOTENCY_KEY_V9_FILE=" + writeFile(t, "key", secretB), "APP_DB_IDLE_TIME=60s",
	}})
	require.NoError(t, err)
	want := []config.Setting{
		{Key: "profile", Value: "dev", Origin: config.OriginDefault, Env: "APP_PROFILE"},
		{Key: "http.addr", Value: "127.0.0.1:8080", Origin: config.OriginDefault, Env: "APP_HTTP_ADDR"},
		{Key: "data_dir", Value: "./.data", Origin: config.OriginDefault, Env: "APP_DATA_DIR"},
		{Key: "multi_instance.enabled", Value: "false", Origin: config.OriginDefault, Env: "APP_MULTI_INSTANCE_ENABLED"},
		{Key: "db.url", Value: "", Origin: config.OriginUnset, Env: "DATABASE_URL"},
		{Key: "db.migration_dsn", Value: "[hidden]", Origin: config.OriginEnv, Env: "APP_MIGRATION_DSN"},
		{Key: "db.migration_streams", Value: "all", Origin: config.OriginDefault, Env: "APP_MIGRATION_STREAMS"},
		{Key: "db.read_dsn", Value: "", Origin: config.OriginUnset, Env: "APP_READ_DSN"},
		{Key: "db.read_max_lag", Value: "10s", Origin: config.OriginDefault, Env: "APP_READ_MAX_LAG"},
		{Key: "db.max_conns", Value: "20", Origin: config.OriginEnv, Env: "APP_DB_MAX_CONNS"},
		{Key: "db.max_lifetime", Value: "30m", Origin: config.OriginFile, Env: "APP_DB_MAX_LIFETIME"},
		{Key: "db.idle_time", Value: "1m", Origin: config.OriginEnv, Env: "APP_DB_IDLE_TIME"},
		{Key: "db.acquire_timeout", Value: "5s", Origin: config.OriginDefault, Env: "APP_DB_ACQUIRE_TIMEOUT"},
		{Key: "db.statement_timeout", Value: "10s", Origin: config.OriginDefault, Env: "APP_DB_STATEMENT_TIMEOUT"},
		{Key: "db.lock_timeout", Value: "3s", Origin: config.OriginDefault, Env: "APP_DB_LOCK_TIMEOUT"},
		{Key: "db.idle_tx_timeout", Value: "10s", Origin: config.OriginDefault, Env: "APP_DB_IDLE_TX_TIMEOUT"},
		{Key: "db.exec_mode", Value: "cache_statement", Origin: config.OriginDefault, Env: "APP_DB_EXEC_MODE"},
		{Key: "idempotency.lease", Value: "30s", Origin: config.OriginDefault, Env: "APP_IDEMPOTENCY_LEASE"},
		{Key: "idempotency.expiry", Value: "24h", Origin: config.OriginDefault, Env: "APP_IDEMPOTENCY_EXPIRY"},
		{Key: "idempotency.inline_limit", Value: "16KiB", Origin: config.OriginFile, Env: "APP_IDEMPOTENCY_INLINE_LIMIT"},
		{Key: "idempotency.reaper_interval", Value: "1m", Origin: config.OriginDefault, Env: "APP_IDEMPOTENCY_REAPER_INTERVAL"},
		{Key: "idempotency.current", Origin: config.OriginUnset, Env: "APP_IDEMPOTENCY_CURRENT"},
		{Key: "idempotency.keys.v9", Value: "[hidden]", Origin: config.OriginSecretFile, Env: "APP_IDEMPOTENCY_KEY_V9"},
		{Key: "idempotency.keys.v10", Value: "[hidden]", Origin: config.OriginFile, Env: "APP_IDEMPOTENCY_KEY_V10"},
		{Key: "nats.url", Value: "", Origin: config.OriginUnset, Env: "NATS_URL"},
		{Key: "nats.monitor_url", Value: "", Origin: config.OriginUnset, Env: "APP_NATS_MONITOR_URL"},
		{Key: "redis.url", Value: "", Origin: config.OriginUnset, Env: "REDIS_URL"},
		{Key: "lock.wait_time", Value: "3s", Origin: config.OriginDefault, Env: "APP_LOCK_WAIT_TIME"},
		{Key: "lock.lease_ttl", Value: "30s", Origin: config.OriginDefault, Env: "APP_LOCK_LEASE_TTL"},
		{Key: "outbox.batch_size", Value: "100", Origin: config.OriginDefault, Env: "APP_OUTBOX_BATCH_SIZE"},
		{Key: "outbox.run_size", Value: "20", Origin: config.OriginDefault, Env: "APP_OUTBOX_RUN_SIZE"},
		{Key: "outbox.poll_interval", Value: "1s", Origin: config.OriginDefault, Env: "APP_OUTBOX_POLL_INTERVAL"},
		{Key: "outbox.lease", Value: "30s", Origin: config.OriginDefault, Env: "APP_OUTBOX_LEASE"},
		{Key: "outbox.backoff_base", Value: "100ms", Origin: config.OriginDefault, Env: "APP_OUTBOX_BACKOFF_BASE"},
		{Key: "outbox.backoff_max", Value: "1m", Origin: config.OriginDefault, Env: "APP_OUTBOX_BACKOFF_MAX"},
		{Key: "inbox.max_attempts", Value: "10", Origin: config.OriginDefault, Env: "APP_INBOX_MAX_ATTEMPTS"},
	}
	require.Empty(t, cmp.Diff(want, c.Settings()))
	c.Settings()[0].Value = "changed"
	require.Equal(t, "dev", c.Settings()[0].Value, "the slice is the caller's")
}
