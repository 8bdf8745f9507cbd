package proxytest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/internal/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAFaultStrikesOneMessageOnce(t *testing.T) {
	dsn := pgtest.DSN(t)
	direct := pgtest.Connect(t, dsn)
	_, err := direct.Exec(t.Context(), "create table public.effect (mode int)")
	require.NoError(t, err)
	p := proxytest.New(t, dsn)
	require.NotEqual(t, dsn, p.DSN())
	for mode, arrives := range map[proxytest.Mode]bool{
		proxytest.Before: false, proxytest.Half: false, proxytest.After: true, proxytest.Late: true, proxytest.OnAnswer: true, proxytest.Mute: true,
	} {
		broken, other := pgtest.Connect(t, p.DSN()), pgtest.Connect(t, p.DSN())
		insert := func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "insert into public.effect values ($1)", pgx.QueryExecModeSimpleProtocol, int(mode))
			return err
		}
		count := func() (n int) {
			require.NoError(t, direct.QueryRow(t.Context(), "select count(*) from public.effect where mode = $1", int(mode)).Scan(&n))
			return n
		}
		f := p.Break(mode, "insert into public.effect")
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			<-f.Struck()
			leave() // nothing but that ends a muted one
		}()
		require.Error(t, insert(ctx, broken), "mode %s", mode)
		<-ctx.Done()
		if mode == proxytest.Late {
			require.Zero(t, count(), "it waits")
			f.Pass()
		}
		if arrives {
			require.Eventually(t, func() bool { return count() == 1 }, 30*time.Second, time.Millisecond, "mode %s", mode)
		}
		require.NoError(t, insert(t.Context(), other), "mode %s: it struck twice, or another connection", mode)
		want := 1
		if arrives {
			want = 2
		}
		require.Equal(t, want, count(), "mode %s", mode)
	}
}
