package pginbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/embedded"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

var errBoom = errors.New("boom")

func TestASessionThatEndsInTheMiddle(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, postgres.Config{}, nil)
			in := f.inbox(t, inbox.Options{})
			out, err := in.Handle(t.Context(), delivery(1), func(ctx context.Context, tr *tx.Tx) error {
				if err := effect("m1", nil)(ctx, tr); err != nil {
					return err
				}
				_ = terminate(ctx, tr)
				return nil // and COMMIT finds no session
			})
			require.Error(t, err)
			require.Equal(t, inbox.Failed, out)
			require.Zero(t, f.effects(t, "m1"))

			out, err = in.Handle(t.Context(), delivery(2), effect("m1", nil))
			require.NoError(t, err)
			require.Equal(t, inbox.Handled, out)
			require.Equal(t, 1, f.effects(t, "m1"))
		})
	}
}

// TestAServerThatStopsInTheMiddle stops PostgreSQL at once, with one message done, one in its handler and one parked.
func TestAServerThatStopsInTheMiddle(t *testing.T) {
	server := pgtest.PrivateServer(t, &embedded.Options{}) // with fsync: what was committed must be there again
	m, err := migrations.New(server.DSN(), []migrations.Stream{migrations.Inbox()}, nil)
	require.NoError(t, err)
	_, err = m.Up(t.Context())
	require.NoError(t, err)
	f := open(t, postgres.Config{DSN: server.DSN()}, nil)
	f.exec(t, `create table public.effect (id text not null)`)
	in := f.inbox(t, inbox.Options{})
	out, err := in.Handle(t.Context(), inbox.Message{ID: "done", Deliveries: 1}, effect("done", nil))
	require.NoError(t, err)
	require.Equal(t, inbox.Handled, out)
	out, err = in.Handle(t.Context(), inbox.Message{ID: "poison", Deliveries: 10}, effect("poison", errBoom))
	require.NoError(t, err)
	require.Equal(t, inbox.Parked, out)

	out, err = in.Handle(t.Context(), delivery(0), func(ctx context.Context, tr *tx.Tx) error {
		if err := effect("m1", nil)(ctx, tr); err != nil {
			return err
		}
		return server.StopImmediate(ctx)
	})
	require.Error(t, err)
	require.Equal(t, inbox.Failed, out)
	out, err = in.Handle(t.Context(), delivery(0), never(t))
	require.Error(t, err)
	require.Equal(t, inbox.Failed, out)

	again, err := embedded.Start(t.Context(), embedded.Options{DataDir: server.DataDir(), Port: server.Port(), BinDir: server.BinDir()})
	require.NoError(t, err)
	f = open(t, postgres.Config{DSN: again.DSN(), AcquireTimeout: 30 * time.Second, StatementTimeout: 30 * time.Second, IdleTxTimeout: time.Minute}, nil)
	in = f.inbox(t, inbox.Options{})
	for id, want := range map[string]inbox.Outcome{"done": inbox.Duplicate, "m1": inbox.Handled, "poison": inbox.Parked} {
		for n := range 2 {
			out, err := in.Handle(t.Context(), inbox.Message{ID: id}, effect(id, nil))
			require.NoError(t, err)
			if n == 1 && want == inbox.Handled {
				want = inbox.Duplicate
			}
			require.Equal(t, want, out, id)
		}
	}
	require.Equal(t, 1, f.effects(t, "done"))
	require.Equal(t, 1, f.effects(t, "m1"))
	require.Zero(t, f.effects(t, "poison"))
	require.Equal(t, "COMPLETED 2", get[string](t, f, stateOf), "the try that the stop ended was counted")
}
