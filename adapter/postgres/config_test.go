package postgres

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/registry"
)

const someDSN = "postgres://app@db.example.com:5432/orders"

func TestDefaultsBoundEverything(t *testing.T) {
	c := Config{DSN: someDSN}
	require.NoError(t, c.Validate())
	v := reflect.ValueOf(c.withDefaults())
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		require.Equal(t, name == "ReadDSN" || name == "VerifyTLS", v.Field(i).IsZero(), name)
	}
}

func TestDefaultsFollowWhatTheyDependOn(t *testing.T) {
	require.NoError(t, Config{DSN: someDSN, MaxLifetime: 30 * time.Second}.Validate(), "idle time and jitter")
	require.NoError(t, Config{DSN: someDSN, StatementTimeout: time.Second}.Validate(), "lock and acquire timeout")
	require.NoError(t, Config{DSN: someDSN, IdleTxTimeout: time.Second}.Validate(), "acquire timeout")
}

// Whoever builds on the package and whoever sets variables must find the same service.
func TestDefaultsAreThoseOfTheRegistry(t *testing.T) {
	r, err := registry.Load(os.DirFS("../../registry"))
	require.NoError(t, err)
	c := Config{}.withDefaults()
	want := map[string]any{
		"APP_DB_MAX_CONNS": c.MaxConns, "APP_DB_MAX_LIFETIME": c.MaxLifetime, "APP_DB_IDLE_TIME": c.IdleTime, "APP_DB_ACQUIRE_TIMEOUT": c.AcquireTimeout,
		"APP_DB_STATEMENT_TIMEOUT": c.StatementTimeout, "APP_DB_LOCK_TIMEOUT": c.LockTimeout, "APP_DB_IDLE_TX_TIMEOUT": c.IdleTxTimeout, "APP_DB_EXEC_MODE": c.ExecMode,
	}
	for _, k := range r.Keys {
		if !strings.HasPrefix(k.Name, "APP_DB_") {
			continue
		}
		value, known := want[k.Name]
		require.True(t, known, "%s: compare it with its field here", k.Name)
		delete(want, k.Name)
		if d, ok := value.(time.Duration); ok {
			registered, err := time.ParseDuration(k.Default)
			require.NoError(t, err, k.Name)
			require.Equal(t, registered, d, k.Name)
			continue
		}
		require.Equal(t, k.Default, fmt.Sprint(value), k.Name)
	}
	require.Empty(t, want, "the registry has no such keys")
}

func TestEachProblemNamesFieldValueAndFix(t *testing.T) {
	for _, c := range []struct {
		field, value string
		cfg          Config
	}{
		{"MaxReplicaLag", "-1s", Config{MaxReplicaLag: -time.Second}},
		{"MaxConns", "-1", Config{MaxConns: -1}},
		{"MaxLifetime", "29s", Config{MaxLifetime: 29 * time.Second, IdleTime: time.Second}},
		{"MaxLifetime", "-1s", Config{MaxLifetime: -time.Second, IdleTime: time.Second, MaxLifetimeJitter: time.Second}},
		{"MaxLifetimeJitter", "-1s", Config{MaxLifetimeJitter: -time.Second}},
		{"MaxLifetimeJitter", "2h0m0s", Config{MaxLifetimeJitter: 2 * time.Hour}},
		{"IdleTime", "59.5s", Config{MaxLifetime: time.Minute, IdleTime: 59500 * time.Millisecond}},
		{"IdleTime", "-1s", Config{IdleTime: -time.Second}},
		{"IdleTime", "2562047h47m16.854775807s", Config{IdleTime: math.MaxInt64}},
		{"AcquireTimeout", "-1s", Config{AcquireTimeout: -time.Second}},
		{"StatementTimeout", "-1s", Config{StatementTimeout: -time.Second, LockTimeout: time.Second}},
		{"StatementTimeout", "1µs", Config{StatementTimeout: time.Microsecond, LockTimeout: time.Millisecond}},
		{"LockTimeout", "10s", Config{LockTimeout: 10 * time.Second}},
		{"AcquireTimeout", "10.001s", Config{AcquireTimeout: 10001 * time.Millisecond, IdleTxTimeout: time.Minute}},
		{"AcquireTimeout", "10s", Config{AcquireTimeout: 10 * time.Second}},
		{"IdleTxTimeout", "600h0m0s", Config{IdleTxTimeout: 600 * time.Hour}},
		{"ExecMode", `"describe_exec"`, Config{ExecMode: "describe_exec"}},
	} {
		c.cfg.DSN = someDSN
		var e *ConfigError
		require.ErrorAs(t, c.cfg.Validate(), &e, c.field)
		i := 0
		for i < len(e.Problems) && e.Problems[i].Field != c.field {
			i++
		}
		require.Less(t, i, len(e.Problems), "%s: %v", c.field, e)
		require.Equal(t, c.value, e.Problems[i].Value)
		require.NotEmpty(t, e.Problems[i].Problem)
		require.NotEmpty(t, e.Problems[i].Fix)
		require.ErrorContains(t, e, c.field+" = "+c.value+": "+e.Problems[i].Problem+"; "+e.Problems[i].Fix)
	}
}

func TestLimitsThemselvesAreAccepted(t *testing.T) {
	require.NoError(t, Config{DSN: someDSN, MaxConns: 1, MaxLifetime: 30 * time.Second, IdleTime: 29 * time.Second}.Validate())
	require.NoError(t, Config{DSN: someDSN, AcquireTimeout: 10 * time.Second, IdleTxTimeout: 10001 * time.Millisecond}.Validate())
}

func TestBrokenDSNIsNotShown(t *testing.T) {
	for _, dsn := range []string{
		"postgres://app:canary@db:port/orders", "postgres://app:can/ary@db/canary", "host=db password=canary sslmode=canary", "canary",
		"postgres://app:canary@db/orders?pool_max_conns=canary", "postgres://app:canary@db/orders?default_query_exec_mode=canary",
	} {
		_, err := Open(t.Context(), Config{DSN: dsn}, nil)
		var e *ConfigError
		require.ErrorAs(t, err, &e, dsn)
		require.ErrorContains(t, err, "DSN")
		require.NotContains(t, err.Error(), "canary")
		require.NotContains(t, err.Error(), "app")
	}
}

func TestPoolConfig(t *testing.T) {
	pc, err := poolConfig(Config{DSN: someDSN + "?statement_timeout=0&connect_timeout=60&search_path=public&pool_max_conns=99&pool_min_conns=98", AcquireTimeout: 4 * time.Second}.withDefaults(), route{})
	require.NoError(t, err)
	require.EqualValues(t, 10, pc.MaxConns)
	require.Equal(t, time.Second, pc.PingTimeout)
	require.Equal(t, []time.Duration{30 * time.Minute, 3 * time.Minute, 5 * time.Minute}, []time.Duration{pc.MaxConnLifetime, pc.MaxConnLifetimeJitter, pc.MaxConnIdleTime})
	require.Equal(t, 3*time.Second, pc.ConnConfig.ConnectTimeout, "a hanging connect ends before the acquire does")
	hasty, err := poolConfig(Config{DSN: someDSN, AcquireTimeout: 400 * time.Millisecond}.withDefaults(), route{})
	require.NoError(t, err)
	require.Equal(t, 100*time.Millisecond, hasty.PingTimeout, "a dead idle connection is replaced within the acquire")
	require.Equal(t, "10000", pc.ConnConfig.RuntimeParams["statement_timeout"])
	require.Empty(t, pc.ConnConfig.RuntimeParams["search_path"])
	require.NotNil(t, pc.ConnConfig.ValidateConnect, "target_session_attrs")
	require.Zero(t, pc.MinConns, "no more than MaxConns")
	pooled, err := poolConfig(Config{DSN: someDSN + "?statement_timeout=0&application_name=x"}.withDefaults(), route{pooler: true})
	require.NoError(t, err)
	require.Empty(t, pooled.ConnConfig.RuntimeParams, "a pooler would hand them on")
	for name, mode := range map[string]pgx.QueryExecMode{
		"": pgx.QueryExecModeCacheStatement, "cache_statement": pgx.QueryExecModeCacheStatement, "cache_describe": pgx.QueryExecModeCacheDescribe,
		"exec": pgx.QueryExecModeExec, "simple_protocol": pgx.QueryExecModeSimpleProtocol,
	} {
		pc, err := poolConfig(Config{DSN: someDSN, ExecMode: name}.withDefaults(), route{})
		require.NoError(t, err)
		require.Equal(t, mode, pc.ConnConfig.DefaultQueryExecMode, name)
	}
}

func TestFatalEndsTheConnectionInAnyLanguage(t *testing.T) {
	pc, err := poolConfig(Config{DSN: someDSN}.withDefaults(), route{})
	require.NoError(t, err)
	keep := pc.ConnConfig.OnPgError
	require.True(t, keep(nil, &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: "ERROR"}))
	require.False(t, keep(nil, &pgconn.PgError{Severity: "치명적오류", SeverityUnlocalized: "FATAL"}))
	require.False(t, keep(nil, &pgconn.PgError{Severity: "PANIK", SeverityUnlocalized: "PANIC"}))
	require.False(t, keep(nil, &pgconn.PgError{Severity: "FATAL"}), "a pooler may leave the other field out")
}

func TestServerVersion(t *testing.T) {
	for _, v := range []string{"15.0", "16.14 (Debian 16.14-1.pgdg12+1)", "17.2", "18beta1"} {
		require.NoError(t, checkVersion(v), v)
	}
	for _, v := range []string{"14.13", "9.6.24", "", "unknown"} {
		err := checkVersion(v)
		require.ErrorContains(t, err, "PostgreSQL 15 or later is required")
		require.ErrorContains(t, err, `"`+v+`"`)
	}
}
