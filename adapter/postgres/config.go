package postgres

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Config is how to reach PostgreSQL and what bounds its use. A zero field means the default; nothing can be made unlimited. What the
// DSN says about these same settings is overridden.
type Config struct {
	DSN               string        // postgres:// URL or key=value form; required; never printed
	ReadDSN           string        // of a replica, for transactions that ask for it (tx.Options.Replica); "" means that the primary serves them; never printed
	MaxReplicaLag     time.Duration // lag from which on the primary serves them; 0 means 10 s
	VerifyTLS         bool          // refuse DSNs that let a server go unverified; those that stay on this machine are exempt
	MaxConns          int32         // connections of this pool, and as many of the one to the replica; 0 means 10
	MaxLifetime       time.Duration // age at which a connection is replaced, at least 30 s; 0 means 30 min
	MaxLifetimeJitter time.Duration // random extra age, so that they are not replaced all at once; 0 means a tenth of MaxLifetime
	IdleTime          time.Duration // idle time after which a connection is closed, at most MaxLifetime - 1 s; 0 means 5 min, or half of MaxLifetime if that is less
	AcquireTimeout    time.Duration // bound on waiting for a connection, at most StatementTimeout, less than IdleTxTimeout; 0 means 5 s, or StatementTimeout or half of IdleTxTimeout if that is less
	StatementTimeout  time.Duration // statement_timeout of every session; 0 means 10 s. A connection that stays silent for 5 s more is given up
	LockTimeout       time.Duration // lock_timeout, less than StatementTimeout; 0 means 3 s, or half of StatementTimeout if that is less
	IdleTxTimeout     time.Duration // idle_in_transaction_session_timeout; 0 means 10 s
	ExecMode          string        // cache_statement, cache_describe, exec or simple_protocol; "" means cache_statement
	ApplicationName   string        // application_name, shown in pg_stat_activity; "" means "caskeleton"
}

// Problem is one thing wrong with a [Config].
type Problem struct {
	Field, Value string // Value is empty for the DSN
	Other        string // the field that Field does not agree with, named in Problem and Fix; empty where Field is wrong by itself
	Problem, Fix string
}

// ConfigError lists everything wrong with a [Config].
type ConfigError struct{ Problems []Problem }

// Error returns one line for each problem: field, value, problem and fix.
func (e *ConfigError) Error() string {
	var b strings.Builder
	b.WriteString("postgres: the configuration is not valid:")
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.Field)
		if p.Value != "" {
			b.WriteString(" = " + p.Value)
		}
		b.WriteString(": " + p.Problem + "; " + p.Fix)
	}
	return b.String()
}

// minLifetime keeps a pool from doing little else than connecting.
const minLifetime = 30 * time.Second

// maxTimeout is the longest that PostgreSQL can express in its 32-bit milliseconds.
const maxTimeout = math.MaxInt32 * time.Millisecond

func execModes() map[string]pgx.QueryExecMode {
	return map[string]pgx.QueryExecMode{
		"cache_statement": pgx.QueryExecModeCacheStatement,
		"cache_describe":  pgx.QueryExecModeCacheDescribe,
		"exec":            pgx.QueryExecModeExec,
		"simple_protocol": pgx.QueryExecModeSimpleProtocol,
	}
}

// withDefaults returns c with each zero field, other than the DSN, replaced by its default.
func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if c.MaxConns == 0 {
		c.MaxConns = 10
	}
	def(&c.MaxLifetime, 30*time.Minute)
	def(&c.MaxLifetimeJitter, c.MaxLifetime/10)
	def(&c.IdleTime, min(5*time.Minute, c.MaxLifetime/2))
	def(&c.StatementTimeout, 10*time.Second)
	def(&c.LockTimeout, min(3*time.Second, c.StatementTimeout/2))
	def(&c.IdleTxTimeout, 10*time.Second)
	def(&c.AcquireTimeout, min(5*time.Second, c.StatementTimeout, c.IdleTxTimeout/2))
	def(&c.MaxReplicaLag, 10*time.Second)
	if c.ExecMode == "" {
		c.ExecMode = "cache_statement"
	}
	if c.ApplicationName == "" {
		c.ApplicationName = "caskeleton"
	}
	return c
}

// Validate returns a [*ConfigError] that lists all problems of c at once, after defaults, or nil.
func (c Config) Validate() error {
	c = c.withDefaults()
	var problems []Problem
	check := func(ok bool, field string, value any, problem, fix string) {
		if !ok {
			problems = append(problems, Problem{Field: field, Value: fmt.Sprint(value), Problem: problem, Fix: fix})
		}
	}
	agree := func(ok bool, field string, value time.Duration, relation, other string, limit time.Duration, why string) {
		if !ok {
			problems = append(problems, Problem{
				Field: field, Value: value.String(), Other: other,
				Problem: "is " + relation + " " + other + ", " + limit.String() + why, Fix: "lower it, or raise " + other,
			})
		}
	}
	if c.DSN == "" {
		check(false, "DSN", "", "is empty", "set it to postgres://user:password@host:5432/database?sslmode=verify-full")
	} else {
		problems = append(problems, dsnProblems("DSN", c.DSN, c.VerifyTLS)...)
	}
	if c.ReadDSN != "" {
		problems = append(problems, dsnProblems("ReadDSN", c.ReadDSN, c.VerifyTLS)...)
	}
	check(c.MaxReplicaLag > 0, "MaxReplicaLag", c.MaxReplicaLag, "is not positive", "set it to a second or more, or leave it out for 10s")
	check(c.MaxConns >= 1, "MaxConns", c.MaxConns, "is less than 1", "set it to 1 or more, or leave it out for 10")
	check(c.MaxLifetime >= minLifetime, "MaxLifetime", c.MaxLifetime, "is less than 30s", "set it to 30s or more, or leave it out for 30m")
	check(c.MaxLifetimeJitter > 0 && c.MaxLifetimeJitter <= max(c.MaxLifetime, minLifetime), "MaxLifetimeJitter", c.MaxLifetimeJitter,
		"is not between 0 and MaxLifetime", "leave it out for a tenth of MaxLifetime")
	check(c.IdleTime >= time.Millisecond, "IdleTime", c.IdleTime, "is less than 1ms", "set it to a minute or more, or leave it out for 5m")
	agree(c.IdleTime <= max(c.MaxLifetime, minLifetime)-time.Second, "IdleTime", c.IdleTime, "not at least 1s less than", "MaxLifetime", c.MaxLifetime, "")
	for _, t := range []struct {
		field string
		value time.Duration
		def   string
	}{
		{"AcquireTimeout", c.AcquireTimeout, "5s"},
		{"StatementTimeout", c.StatementTimeout, "10s"},
		{"LockTimeout", c.LockTimeout, "3s"},
		{"IdleTxTimeout", c.IdleTxTimeout, "10s"},
	} {
		check(t.value >= time.Millisecond && t.value <= maxTimeout, t.field, t.value, "is not between 1ms and "+maxTimeout.Truncate(time.Hour).String(),
			"set a positive duration, or leave it out for "+t.def)
	}
	agree(c.LockTimeout < c.StatementTimeout || c.StatementTimeout < 0, "LockTimeout", c.LockTimeout,
		"not less than", "StatementTimeout", c.StatementTimeout, ", so it would never fire")
	agree(c.AcquireTimeout <= c.StatementTimeout || c.StatementTimeout < 0, "AcquireTimeout", c.AcquireTimeout,
		"more than", "StatementTimeout", c.StatementTimeout, ", and no single statement holds a connection for longer")
	// InNew waits for a second connection while its outer transaction sits idle.
	agree(c.AcquireTimeout < c.IdleTxTimeout || c.IdleTxTimeout < 0, "AcquireTimeout", c.AcquireTimeout,
		"not less than", "IdleTxTimeout", c.IdleTxTimeout, ", so the server would end a transaction that waits for a second connection")
	_, known := execModes()[c.ExecMode]
	check(known, "ExecMode", fmt.Sprintf("%q", c.ExecMode), "is not an exec mode", "use cache_statement, cache_describe, exec or simple_protocol")
	if problems == nil {
		return nil
	}
	return &ConfigError{problems}
}
