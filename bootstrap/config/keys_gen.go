// Code generated from registry/env-keys.yaml by make generate. DO NOT EDIT.

package config

// keys is every setting, in the order of docs/reference/configuration.md; nothing changes it.
var keys = []Key{
	{Env: "APP_PROFILE", Path: "profile", Type: "enum", Default: "dev", Values: []string{"dev", "prod"}, Doc: "Where the service runs. dev suits a laptop and is the default so that `make run` needs no settings; set prod wherever others depend on the service: it refuses to start without a database and secrets of its own."},
	{Env: "APP_HTTP_ADDR", Path: "http.addr", Type: "string", Default: "127.0.0.1:8080", Doc: "Address and port to listen on; port 0 takes a free one, which is printed."},
	{Env: "APP_DATA_DIR", Path: "data_dir", Type: "string", Default: "./.data", Doc: "Directory of the embedded PostgreSQL and, in the dev profile, of the idempotency secret that it makes; not used where DATABASE_URL and APP_IDEMPOTENCY_KEY_<version> are set."},
	{Env: "APP_MULTI_INSTANCE_ENABLED", Path: "multi_instance.enabled", Type: "bool", Default: "false", Doc: "Whether several instances of the service work on one database. Locks are then kept where all of them see them, in PostgreSQL or, where REDIS_URL is set, in Redis; otherwise in the process."},
	{Env: "DATABASE_URL", Path: "db.url", Type: "string", Secret: true, Doc: "PostgreSQL for the service's own role, as a URL or a keyword string. Without it an embedded server is started."},
	{Env: "APP_MIGRATION_DSN", Path: "db.migration_dsn", Type: "string", Secret: true, Doc: "PostgreSQL for the role that owns the schema, connected directly and not through a pooler. The service migrates as it starts where this is set, and always in the dev profile; without it, the migrate command uses DATABASE_URL."},
	{Env: "APP_MIGRATION_STREAMS", Path: "db.migration_streams", Type: "string", Default: "all", Doc: "Migration streams of the kit that are switched on: all, or names divided by commas, as idempotency,inbox. core is always on. What is left out is neither migrated nor asked for; tables and data that it made stay."},
	{Env: "APP_DB_MAX_CONNS", Path: "db.max_conns", Type: "int", Default: "10", Doc: "Connections that the pool opens at most."},
	{Env: "APP_DB_MAX_LIFETIME", Path: "db.max_lifetime", Type: "duration", Default: "30m", Doc: "Age at which a connection is replaced, at least 30s."},
	{Env: "APP_DB_IDLE_TIME", Path: "db.idle_time", Type: "duration", Default: "5m", Doc: "Time without use after which a connection is closed, at least 1s shorter than the lifetime."},
	{Env: "APP_DB_ACQUIRE_TIMEOUT", Path: "db.acquire_timeout", Type: "duration", Default: "5s", Doc: "How long a caller waits for a connection of the pool before it gets DB_POOL_EXHAUSTED; no longer than a statement may run, and shorter than a transaction may sit idle."},
	{Env: "APP_DB_STATEMENT_TIMEOUT", Path: "db.statement_timeout", Type: "duration", Default: "10s", Doc: "How long one statement may run (statement_timeout); never unlimited."},
	{Env: "APP_DB_LOCK_TIMEOUT", Path: "db.lock_timeout", Type: "duration", Default: "3s", Doc: "How long a statement waits for a row or table lock (lock_timeout), less than it may run; never unlimited."},
	{Env: "APP_DB_IDLE_TX_TIMEOUT", Path: "db.idle_tx_timeout", Type: "duration", Default: "10s", Doc: "How long a transaction may sit idle before the server ends it (idle_in_transaction_session_timeout); never unlimited."},
	{Env: "APP_DB_EXEC_MODE", Path: "db.exec_mode", Type: "enum", Default: "cache_statement", Values: []string{"cache_statement", "cache_describe", "exec", "simple_protocol"}, Doc: "How pgx runs statements. Behind a transaction pooler take cache_describe, exec or simple_protocol: cache_statement is refused where the pooler does not carry prepared statements along, as PgBouncer before 1.21."},
	{Env: "APP_IDEMPOTENCY_LEASE", Path: "idempotency.lease", Type: "duration", Default: "30s", Doc: "How long a claim of an idempotency key is held before another caller may take it over, at least 1ms."},
	{Env: "APP_IDEMPOTENCY_EXPIRY", Path: "idempotency.expiry", Type: "duration", Default: "24h", Doc: "How long the answer to a finished operation is kept for repeats."},
	{Env: "APP_IDEMPOTENCY_INLINE_LIMIT", Path: "idempotency.inline_limit", Type: "bytes", Default: "8KiB", Doc: "Size up to which an answer is stored beside its record, at most 1MiB."},
	{Env: "APP_IDEMPOTENCY_KEY_<version>", Path: "idempotency.keys.<version>", Type: "string", Secret: true, Pattern: true, Doc: "HMAC secret of this version, 32 bytes or more, that turns client keys into digests. Exactly one version must be set until rotation exists, in all instances the same, and neither name nor secret may ever change: repeats of what came before would not be recognised and would run again, so that a service with another one does not start. The dev profile makes its own, in APP_DATA_DIR."},
	{Env: "NATS_URL", Path: "nats.url", Type: "string", Secret: true, Doc: "NATS servers with JetStream, as nats://host:4222, several divided by commas. Without it the dev profile runs a server in the service's own process."},
	{Env: "APP_NATS_MONITOR_URL", Path: "nats.monitor_url", Type: "string", Secret: true, Doc: "Monitoring endpoint of the NATS server that stores the events, as http://host:8222: there its sync_always is read. Not needed with three replicas."},
	{Env: "REDIS_URL", Path: "redis.url", Type: "string", Secret: true, Doc: "Redis that keeps the locks of several instances, as redis://user:password@host:6379 or rediss://. Not used by a single one."},
	{Env: "APP_LOCK_WAIT_TIME", Path: "lock.wait_time", Type: "duration", Default: "3s", Doc: "How long a caller that says nothing else waits for a lock before it gets LOCK_ACQUISITION_TIMEOUT."},
	{Env: "APP_LOCK_LEASE_TTL", Path: "lock.lease_ttl", Type: "duration", Default: "30s", Doc: "How long a lock is held at most where its caller says nothing else; no shorter than the wait. A holder that dies delays the next one by as much."},
	{Env: "APP_OUTBOX_BATCH_SIZE", Path: "outbox.batch_size", Type: "int", Default: "100", Doc: "Aggregates whose events a relay takes at a time."},
	{Env: "APP_OUTBOX_RUN_SIZE", Path: "outbox.run_size", Type: "int", Default: "20", Doc: "Events of one aggregate that a relay publishes at a time."},
	{Env: "APP_OUTBOX_POLL_INTERVAL", Path: "outbox.poll_interval", Type: "duration", Default: "1s", Doc: "How long a relay waits at most before it looks for events that nobody told it of."},
	{Env: "APP_OUTBOX_LEASE", Path: "outbox.lease", Type: "duration", Default: "30s", Doc: "How long a relay owns what it publishes; a relay that dies delays it by as much. At least 12s."},
	{Env: "APP_OUTBOX_BACKOFF_BASE", Path: "outbox.backoff_base", Type: "duration", Default: "100ms", Doc: "Longest wait after the first failure of an event; it doubles with each further one."},
	{Env: "APP_OUTBOX_BACKOFF_MAX", Path: "outbox.backoff_max", Type: "duration", Default: "1m", Doc: "Where that doubling ends."},
	{Env: "APP_INBOX_MAX_ATTEMPTS", Path: "inbox.max_attempts", Type: "int", Default: "10", Doc: "Deliveries of a message after which it is set aside for an operator (RECOVERY_REQUIRED)."},
}
