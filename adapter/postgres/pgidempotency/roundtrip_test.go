package pgidempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/tx"
)

// newGuard returns one of the versions, the first being the current one.
func (f *fixture) newGuard(t *testing.T, o *idempotency.Options, versions ...string) *idempotency.Guard {
	t.Helper()
	if len(versions) == 0 {
		versions = []string{"1"}
	}
	keys, err := idempotency.NewKeyring(versions[0], bytes.Repeat([]byte(versions[0]), 32))
	require.NoError(t, err)
	for _, v := range versions[1:] {
		keys, err = keys.Accept(v, bytes.Repeat([]byte(v), 32))
		require.NoError(t, err)
	}
	g, err := idempotency.New(f.records, f.runner, keys, o)
	require.NoError(t, err)
	return g
}

func key(client any) idempotency.Key {
	return idempotency.Key{Method: "POST", Route: "/x", Client: fmt.Sprint(client)}
}

// A first execution makes three round trips more than its transaction alone, a replay one: whatever the size of the answer, and during a
// rotation of keys as well.
func TestRoundTrips(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, mode)
			p := proxytest.New(t, f.dsn)
			var err error
			f.db, err = postgres.Open(t.Context(), postgres.Config{DSN: p.DSN(), ExecMode: mode, MaxConns: 1}, nil)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, f.db.Close(context.WithoutCancel(t.Context()))) })
			f.runner, err = tx.NewRunner(f.db, nil)
			require.NoError(t, err)
			f.records = pgidempotency.New(f.db)
			var n int
			trips := func(call func()) int64 {
				call() // the statements are known to the connection afterwards
				n++
				before := p.Trips()
				call()
				return p.Trips() - before
			}
			business := func(ctx context.Context, tr *tx.Tx) (string, error) {
				q, err := postgres.Querier(tr)
				require.NoError(t, err)
				_, err = q.Exec(ctx, `select 1`)
				require.NoError(t, err)
				return "answer", err
			}
			bare := trips(func() {
				_, err := tx.Value(t.Context(), f.runner.InWrite, business)
				require.NoError(t, err)
			})
			require.EqualValues(t, 3, bare, "BEGIN, the statement and COMMIT, as pgx.BeginFunc makes them")
			for name, versions := range map[string][]string{"one": {"1"}, "several": {"3", "2", "1"}} {
				for _, size := range []int{10, 100_000} {
					g := f.newGuard(t, nil, versions...)
					do := func(replayed bool) {
						out, err := idempotency.Do(t.Context(), g, key(fmt.Sprintf("%s-%d-%d", name, size, n)), idempotency.Fingerprint{},
							func(ctx context.Context, tr *tx.Tx) (string, error) {
								_, err := business(ctx, tr)
								return strings.Repeat("x", size), err
							})
						require.NoError(t, err)
						require.Equal(t, replayed, out.Replayed)
						require.Len(t, out.Value, size)
					}
					require.Equal(t, bare+3, trips(func() { do(false) }), "%s, %d bytes", name, size)
					before := p.Trips()
					do(true)
					require.Equal(t, before+1, p.Trips(), "replay: %s, %d bytes", name, size)
				}
			}
		})
	}
}
