package bootstrap

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/filesystem"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/bootstrap/config"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/lock/schedule"
	"caskeleton.dev/tx"
)

func keyOf(client string) idempotency.Key {
	return idempotency.Key{Method: "POST", Route: "/payments", Client: client}
}

// closing is a store that tells when it is closed.
type closing struct {
	*filesystem.Responses

	closed atomic.Int64
}

func (c *closing) Close() error {
	c.closed.Add(1)
	return c.Responses.Close()
}

func TestLargeAnswersAreKeptWhereTheServiceSays(t *testing.T) {
	var app *App
	store := &closing{}
	service := Service{Name: "test", Routes: routes(nil), Responses: func(c *config.Config) (idempotency.ResponseStore, error) {
		var err error
		store.Responses, err = filesystem.NewResponses(filepath.Join(c.DataDir, "responses"))
		return store, err
	}, Jobs: func(a *App) []schedule.Job { app = a; return nil }}
	c := configOf(t, "DATABASE_URL="+pgtest.DSN(t))
	r, listening := begin(t, c, service)
	wait(t, listening)
	large := strings.Repeat("x", 9<<10)
	for _, replayed := range []bool{false, true} {
		out, err := idempotency.Do(t.Context(), app.Idempotency, keyOf("k"), idempotency.Fingerprint{}, func(context.Context, *tx.Tx) (string, error) { return large, nil })
		require.NoError(t, err)
		require.Equal(t, idempotency.Outcome[string]{Value: large, Replayed: replayed}, out)
	}
	files, err := filepath.Glob(filepath.Join(c.DataDir, "responses", "*", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Zero(t, store.closed.Load())
	require.NoError(t, r.stop(t))
	require.Equal(t, int64(1), store.closed.Load())
}

func TestAStoreOfLargeAnswersThatDoesNotOpenStopsTheStart(t *testing.T) {
	service := Service{Name: "test", Routes: routes(nil), Responses: func(*config.Config) (idempotency.ResponseStore, error) { return nil, os.ErrPermission }}
	r, _ := begin(t, configOf(t, "DATABASE_URL="+pgtest.DSN(t)), service)
	err := wait(t, r.result)
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorContains(t, err, "the store of large answers")
}

// What was interrupted in either instance is asked about and settled, and what is not known yet is left.
func TestTheServiceSettlesWhatWasInterrupted(t *testing.T) {
	var apps [2]*App
	dsn := pgtest.DSN(t)
	for i := range apps {
		service := Service{Name: "test", Routes: routes(nil), Reconciler: func(a *App) idempotency.Reconciler {
			apps[i] = a
			return func(ctx context.Context, e idempotency.Entry) (idempotency.Settlement, error) {
				unknown, err := a.Idempotency.Show(ctx, keyOf("unknown"))
				if err != nil || unknown.Scope == e.Scope {
					return idempotency.Settlement{}, err
				}
				return idempotency.CompletedWith("charged"), nil
			}
		}}
		r, listening := begin(t, configOf(t, "DATABASE_URL="+dsn, secretOf("V1", "k"), "APP_IDEMPOTENCY_REAPER_INTERVAL=20ms"), service)
		wait(t, listening)
		t.Cleanup(func() { require.NoError(t, r.stop(t)) })
	}
	cut := errors.New("the connection broke")
	charge := func(app *App, client string) (idempotency.Outcome[string], error) {
		return idempotency.DoExternal(t.Context(), app.Idempotency, keyOf(client), idempotency.Fingerprint{}, func(context.Context, *idempotency.Execution) (string, error) {
			return "", cut
		})
	}
	for i, client := range []string{"unknown", "a", "b"} {
		_, err := charge(apps[i%2], client)
		require.ErrorIs(t, err, cut)
	}
	for i, client := range []string{"a", "b"} {
		require.Eventually(t, func() bool {
			out, err := charge(apps[i], client)
			return err == nil && out == idempotency.Outcome[string]{Value: "charged", Replayed: true}
		}, patience, 10*time.Millisecond, client)
	}
	succeeds(t, apps[0], "idempotency.reconcile")
	e, err := apps[0].Idempotency.Show(t.Context(), keyOf("unknown"))
	require.NoError(t, err)
	require.Equal(t, idempotency.Abandoned, e.State)
}
