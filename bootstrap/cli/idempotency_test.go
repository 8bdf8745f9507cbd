package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// What the operator finds by the key of a request is what the service left, and what is settled is what a repeat of the request gets.
func TestASettledOperationAnswersItsRepeats(t *testing.T) {
	const secret = "canary-0123456789-0123456789-0123456789"
	dsn := migrationstest.DSN(t, migrations.Idempotency())
	db, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.WithoutCancel(t.Context()))) })
	runner, err := tx.NewRunner(db, nil)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("v1", []byte(secret))
	require.NoError(t, err)
	guard, err := idempotency.New(pgidempotency.New(db), runner, keys, nil)
	require.NoError(t, err)
	key := idempotency.Key{Tenant: "acme", Principal: "bob", Method: "POST", Route: "/payments", Client: "canary-key"}
	scope := ""
	pay := func() (idempotency.Outcome[httpapi.Response], error) {
		return idempotency.DoExternal(t.Context(), guard, key, idempotency.Fingerprint{}, func(_ context.Context, e *idempotency.Execution) (httpapi.Response, error) {
			scope = e.Key()
			return httpapi.Response{}, errors.New("the connection broke")
		})
	}
	_, err = pay()
	require.Error(t, err)

	env := []string{"DATABASE_URL=" + dsn, "APP_IDEMPOTENCY_KEY_V1=" + secret}
	kit := func(command string) string {
		return play(t.Context(), run{environ: env, command: "kit idempotency " + command})
	}
	shown := kit("show --tenant acme --principal bob --method POST --route /payments --key canary-key -o jsonl")
	require.Contains(t, shown, `"scope":"`+scope+`","state":"ABANDONED"`)
	require.Contains(t, shown, "[exit 0]")
	require.NotContains(t, shown, "canary")
	body := filepath.Join(t.TempDir(), "body")
	require.NoError(t, os.WriteFile(body, []byte("paid"), 0o600))
	require.Contains(t, kit("reconcile "+scope+" --verdict completed --status 201 --content-type text/plain --answer "+body+" --operator ada --reason ticket-7"), "[exit 0]")
	out, err := pay()
	require.NoError(t, err)
	require.True(t, out.Replayed)
	require.Equal(t, 201, out.Value.Status)
	require.Equal(t, "text/plain", out.Value.Header.Get("Content-Type"))
	require.Equal(t, "paid", string(out.Value.Body))
}
