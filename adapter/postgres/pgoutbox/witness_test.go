package pgoutbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/tx"
)

// The cuts of adapter/postgres ask about transactions that were lost; this is what else may be found under the id.
func TestAnEventTellsOfItsTransactionAlone(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			const id = "0197fbc0-0000-7000-8000-00000000000a"
			e := event("1", "x")
			e.ID = id
			f.commit(t, e)
			at := get[time.Time](t, f, `select recorded_at from caskeleton.outbox_identity`)
			for _, c := range []struct {
				what string
				id   string
				at   time.Time
				want tx.Outcome
			}{
				{"its own", id, at, tx.Committed},
				{"another attempt's, under an id that the program makes", id, at.Add(-time.Microsecond), tx.NotCommitted},
				{"none", "0197fbc0-0000-7000-8000-00000000000b", at, tx.NotCommitted},
			} {
				got, err := pgoutbox.Identity(c.id, c.at)(t.Context(), f.db)
				require.NoError(t, err, c.what)
				require.Equal(t, c.want, got, c.what)
			}
		})
	}
}
