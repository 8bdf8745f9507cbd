package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// A server that is no replica has no lag, however long ago it was that it was one: that of a DSN that names the primary twice, or of a
// standby that was promoted.
func TestAReadDSNOfAPrimary(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := open(t, postgres.Config{DSN: dsn, ReadDSN: dsn, MaxReplicaLag: time.Millisecond, MaxConns: 1, AcquireTimeout: 500 * time.Millisecond})
	require.Zero(t, becomes(t, db, serves).Lag)

	t.Run("that is busy still serves", func(t *testing.T) {
		read := tx.BeginOptions{ReadOnly: true, Options: tx.Options{Replica: true}}
		hold := begin(t, db, read)
		defer func() { require.NoError(t, hold.Rollback(context.WithoutCancel(t.Context()))) }()
		require.Eventually(t, func() bool { return postgres.ReplicaPool(db).Stat().CanceledAcquireCount() > 1 }, 30*time.Second, time.Millisecond,
			"whoever looks waits for a connection as well")
		s, _ := db.Replica()
		require.True(t, s.Serving, "its load would be the end of the primary")
		_, err := db.Begin(t.Context(), read)
		require.ErrorIs(t, err, fault.DBPoolExhausted)
	})
}
