package config

import (
	"math"
	"strings"
	"time"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
)

// Config is what [Load] made of its sources: complete, checked, and not changed afterwards. It is safe for concurrent use, and to
// print: its secrets hide themselves.
type Config struct {
	Profile Profile
	HTTP    HTTP
	DataDir string // of the embedded PostgreSQL, and of the secret that the dev profile makes
	// MultiInstance says that other instances work on the same database.
	MultiInstance bool
	DB            DB
	Idempotency   Idempotency
	NATS          NATS
	Redis         Redis
	Lock          Lock
	Outbox        Outbox
	Inbox         Inbox

	settings []Setting
}

// Profile says how strict a start is.
type Profile string

// The two profiles.
const (
	Dev  Profile = "dev"  // what is missing is embedded
	Prod Profile = "prod" // database and secrets must be given
)

// HTTP is how the service is reached.
type HTTP struct {
	Addr string // host:port; port 0 takes a free one
}

// DB is how PostgreSQL is used. No timeout is zero.
type DB struct {
	URL              Secret // runtime role; not set: the dev profile starts an embedded server
	MigrationDSN     Secret // owner of the schema; not set: URL serves for both
	MigrationStreams string // of the kit: "all", or names divided by commas
	ReadDSN          Secret // replica for reads that ask for it; not set: URL serves them
	ReadMaxLag       time.Duration
	VerifyTLS        bool // no DSN may let a server go unverified: outside of the dev profile
	MaxConns         int32
	MaxLifetime      time.Duration
	IdleTime         time.Duration
	AcquireTimeout   time.Duration
	StatementTimeout time.Duration
	LockTimeout      time.Duration
	IdleTxTimeout    time.Duration
	ExecMode         string // cache_statement, cache_describe, exec or simple_protocol
}

// Migration returns the DSN to migrate with: MigrationDSN, else URL.
func (d DB) Migration() Secret {
	if d.MigrationDSN.IsSet() {
		return d.MigrationDSN
	}
	return d.URL
}

// Streams returns the kit's migration streams that are switched on, in the order in which they run.
func (d DB) Streams() ([]migrations.Stream, error) {
	if d.MigrationStreams == allStreams {
		return migrations.All(), nil
	}
	return migrations.Select(strings.Split(d.MigrationStreams, ",")...)
}

const allStreams = "all"

// Pool returns the settings of the runtime role's pool.
func (d DB) Pool() postgres.Config {
	return postgres.Config{
		DSN: d.URL.Reveal(), ReadDSN: d.ReadDSN.Reveal(), MaxReplicaLag: d.ReadMaxLag, VerifyTLS: d.VerifyTLS, MaxConns: d.MaxConns, MaxLifetime: d.MaxLifetime, IdleTime: d.IdleTime, AcquireTimeout: d.AcquireTimeout,
		StatementTimeout: d.StatementTimeout, LockTimeout: d.LockTimeout, IdleTxTimeout: d.IdleTxTimeout, ExecMode: d.ExecMode,
	}
}

// Idempotency is how requests are recognised and answers kept.
type Idempotency struct {
	Lease       time.Duration
	Expiry      time.Duration
	InlineLimit int64 // bytes

	ReaperInterval time.Duration
	CurrentVersion string // of Keys, that claims are made under; "" is the highest

	Keys map[string]Secret // HMAC secrets by version, each at least 32 bytes; the bytes of the text are the secret
}

// NATS is how events leave and arrive.
type NATS struct {
	URL        Secret // not set: the dev profile runs a server in this process
	MonitorURL Secret // where the server's sync_always is read
}

// Redis is where several instances may keep what they share for a time.
type Redis struct {
	URL Secret // not set: PostgreSQL keeps it
}

// Lock is how locks are taken by callers who say nothing else.
type Lock struct {
	WaitTime time.Duration
	LeaseTTL time.Duration
}

// Outbox is how recorded events are relayed.
type Outbox struct {
	BatchSize    int // aggregates at a time
	RunSize      int // events of one aggregate at a time
	PollInterval time.Duration
	Lease        time.Duration
	BackoffBase  time.Duration
	BackoffMax   time.Duration
}

// Inbox is how messages are consumed.
type Inbox struct {
	MaxAttempts int // deliveries until a message is set aside
}

// Current returns the version that claims are made under: the one that is set, else the highest, v10 being above v9. It is empty where there are
// no keys.
func (i Idempotency) Current() string {
	current := i.CurrentVersion
	if current != "" {
		return current
	}
	for v := range i.Keys {
		if current == "" || compareVersions(v, current) > 0 {
			current = v
		}
	}
	return current
}

// bind moves the values into their fields. A key that is not set, or is broken, leaves its field zero.
func (l *loader) bind() *Config {
	c := &Config{
		Profile:       Profile(value[string](l, "profile")),
		HTTP:          HTTP{Addr: value[string](l, "http.addr")},
		DataDir:       value[string](l, "data_dir"),
		MultiInstance: value[bool](l, "multi_instance.enabled"),
		DB: DB{
			URL:              value[Secret](l, "db.url"),
			MigrationDSN:     value[Secret](l, "db.migration_dsn"),
			MigrationStreams: value[string](l, "db.migration_streams"),
			ReadDSN:          value[Secret](l, "db.read_dsn"),
			ReadMaxLag:       value[time.Duration](l, "db.read_max_lag"),
			VerifyTLS:        value[string](l, "profile") == string(Prod),
			MaxConns:         int32(min(max(value[int64](l, "db.max_conns"), math.MinInt32), math.MaxInt32)), // a rule refuses what this clamps
			MaxLifetime:      value[time.Duration](l, "db.max_lifetime"),
			IdleTime:         value[time.Duration](l, "db.idle_time"),
			AcquireTimeout:   value[time.Duration](l, "db.acquire_timeout"),
			StatementTimeout: value[time.Duration](l, "db.statement_timeout"),
			LockTimeout:      value[time.Duration](l, "db.lock_timeout"),
			IdleTxTimeout:    value[time.Duration](l, "db.idle_tx_timeout"),
			ExecMode:         value[string](l, "db.exec_mode"),
		},
		Idempotency: Idempotency{
			Lease:       value[time.Duration](l, "idempotency.lease"),
			Expiry:      value[time.Duration](l, "idempotency.expiry"),
			InlineLimit: int64(value[byteSize](l, "idempotency.inline_limit")),

			ReaperInterval: value[time.Duration](l, "idempotency.reaper_interval"),
			CurrentVersion: strings.ToLower(value[string](l, "idempotency.current")),
			Keys:           map[string]Secret{},
		},
		NATS:  NATS{URL: value[Secret](l, "nats.url"), MonitorURL: value[Secret](l, "nats.monitor_url")},
		Redis: Redis{URL: value[Secret](l, "redis.url")},
		Lock:  Lock{WaitTime: value[time.Duration](l, "lock.wait_time"), LeaseTTL: value[time.Duration](l, "lock.lease_ttl")},
		Outbox: Outbox{
			BatchSize:    int(value[int64](l, "outbox.batch_size")),
			RunSize:      int(value[int64](l, "outbox.run_size")),
			PollInterval: value[time.Duration](l, "outbox.poll_interval"),
			Lease:        value[time.Duration](l, "outbox.lease"),
			BackoffBase:  value[time.Duration](l, "outbox.backoff_base"),
			BackoffMax:   value[time.Duration](l, "outbox.backoff_max"),
		},
		Inbox: Inbox{MaxAttempts: int(value[int64](l, "inbox.max_attempts"))},
	}
	for version, k := range l.filled("idempotency.keys.<version>") {
		if s := value[Secret](l, k.Path); s.IsSet() {
			c.Idempotency.Keys[version] = s
		}
	}
	return c
}

func value[T any](l *loader, path string) T {
	v, _ := l.values[path].(T)
	return v
}
