package pglock_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pglock"
)

// step is what EXPLAIN says of one step of a plan.
type step struct {
	Type     string   `json:"Node Type"`
	Relation string   `json:"Relation Name"`
	Index    string   `json:"Index Name"`
	Arbiters []string `json:"Conflict Arbiter Indexes"`
	Plans    []step   `json:"Plans"`
}

// TestPlansUseTheKey: with plans that stay, when nobody has looked at the table yet, when much is held, and when next to nothing is any
// more.
func TestPlansUseTheKey(t *testing.T) {
	n := newNode(t, postgres.Config{})
	conn := n.session(t)
	_, err := conn.Exec(t.Context(), `set plan_cache_mode = force_generic_plan`)
	require.NoError(t, err)
	for name, sql := range map[string]string{"acquire": pglock.AcquireSQL, "look": pglock.LookSQL, "renew": pglock.RenewSQL, "release": pglock.ReleaseSQL} {
		_, err = conn.Exec(t.Context(), `prepare `+name+` as `+sql)
		require.NoError(t, err)
	}
	check := func() {
		t.Helper()
		for call, used := range map[string]int{`acquire('\x00', 'r', 'k', '\x00', 1, true)`: 2, `look('\x00')`: 1, `renew('\x00', '\x00', 1)`: 2, `release('\x00', '\x00')`: 1} {
			var text string
			require.NoError(t, conn.QueryRow(t.Context(), `explain (format json) execute `+call, pgx.QueryExecModeSimpleProtocol).Scan(&text))
			var plans []struct{ Plan step }
			require.NoError(t, json.Unmarshal([]byte(text), &plans))
			var walk func(s step)
			walk = func(s step) {
				if s.Relation == "lock_lease" && s.Type != "ModifyTable" {
					require.Equal(t, "Index Scan lock_lease_pkey", s.Type+" "+s.Index, "%s:\n%s", call, text)
					used--
				}
				for range s.Arbiters {
					used--
				}
				for _, inner := range s.Plans {
					walk(inner)
				}
			}
			walk(plans[0].Plan)
			require.Zero(t, used, text)
		}
	}
	check()
	n.exec(t, `insert into caskeleton.lock_lease select sha256(i::text::bytea), 'r', 'k' || i, substring(sha256(i::text::bytea) for 16), now(), now()
		from generate_series(1, 10000) i`)
	n.exec(t, `analyze caskeleton.lock_lease`)
	check()
	n.exec(t, `delete from caskeleton.lock_lease where name <> 'k7'`)
	require.Eventually(t, func() bool { // vacuum leaves what another test's snapshot may see
		n.exec(t, `vacuum (analyze) caskeleton.lock_lease`)
		return get[int](t, n, `select reltuples::int4 from pg_class where oid = 'caskeleton.lock_lease'::regclass`) <= 1
	}, 30*time.Second, 100*time.Millisecond)
	check()
}
