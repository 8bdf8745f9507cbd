package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/bootstrap/cli"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// guardOn is a service's.
func guardOn(t *testing.T, dsn, secret string) *idempotency.Guard {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.WithoutCancel(t.Context()))) })
	runner, err := tx.NewRunner(db, nil)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("v1", []byte(secret))
	require.NoError(t, err)
	guard, err := idempotency.New(pgidempotency.New(db), runner, keys, nil)
	require.NoError(t, err)
	return guard
}

// What the operator finds by the key of a request is what the service left, and what is settled is what a repeat of the request gets.
func TestASettledOperationAnswersItsRepeats(t *testing.T) {
	const secret = "canary-0123456789-0123456789-0123456789"
	dsn := migrationstest.DSN(t, migrations.Idempotency())
	guard := guardOn(t, dsn, secret)
	key := idempotency.Key{Tenant: "acme", Principal: "bob", Method: "POST", Route: "/payments", Client: "canary-key"}
	scope := ""
	pay := func() (idempotency.Outcome[httpapi.Response], error) {
		return idempotency.DoExternal(t.Context(), guard, key, idempotency.Fingerprint{}, func(_ context.Context, e *idempotency.Execution) (httpapi.Response, error) {
			scope = e.Key()
			return httpapi.Response{}, errors.New("the connection broke")
		})
	}
	_, err := pay()
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

// kept is a database with n interrupted operations, the oldest first, whose scopes end in 01, 02 and so on.
func kept(t *testing.T, n int) (dsn string, owner *pgx.Conn) {
	t.Helper()
	dsn = migrationstest.DSN(t, migrations.Idempotency())
	owner = pgtest.Connect(t, dsn)
	abandon(t, owner, 1, n)
	return dsn, owner
}

func abandon(t *testing.T, owner *pgx.Conn, from, to int) {
	t.Helper()
	_, err := owner.Exec(t.Context(), `
		insert into caskeleton.idempotency_record (scope, key_version, route, fingerprint, state, owner, attempt, operation, revision, lease_expires_at, expires_at,
			created_at, updated_at, executing_since)
		select decode(repeat('00', 31) || lpad(to_hex(i), 2, '0'), 'hex'), 'v1', 'POST /payments', decode(repeat('00', 32), 'hex'), 'ABANDONED', 'node', 1, 'op', 3, now(), now(),
			'2026-01-02'::timestamptz + i * interval '1 microsecond', now(), now()
		from generate_series($1::int, $2::int) i`, from, to)
	require.NoError(t, err)
}

func scopeOf(n int) string { return fmt.Sprintf("%064x", n) }

var (
	shownScope = regexp.MustCompile(`(?m)^[0-9a-f]{64}`)
	more       = regexp.MustCompile(`(?m)^more: (.*)$`)
)

// TestAListGoesOnBySayingHow: by the command that it prints, and while records come and go.
func TestAListGoesOnBySayingHow(t *testing.T) {
	dsn, owner := kept(t, 7)
	env := []string{"DATABASE_URL=" + dsn}
	command := "kit idempotency list --limit 3"
	var seen []string
	for range 3 {
		out := play(t.Context(), run{environ: env, command: command})
		seen = append(seen, shownScope.FindAllString(out, -1)...)
		next := more.FindStringSubmatch(out)
		if next == nil {
			break
		}
		command = next[1]
		if len(seen) == 3 { // one that was seen, one at the cursor and one that was not yet are settled, and others come
			_, err := owner.Exec(t.Context(), `delete from caskeleton.idempotency_record where scope in ($1, $2, $3)`, scope(1), scope(3), scope(5))
			require.NoError(t, err)
			abandon(t, owner, 8, 9)
		}
	}
	require.Equal(t, []string{scopeOf(1), scopeOf(2), scopeOf(3), scopeOf(4), scopeOf(6), scopeOf(7), scopeOf(8), scopeOf(9)}, seen)

	var rows []struct{ Scope, Next string }
	out, _, _ := strings.Cut(play(t.Context(), run{environ: env, command: "kit idempotency list --limit 4 -o json"}), "[exit")
	require.NoError(t, json.Unmarshal([]byte(out), &rows))
	require.Len(t, rows, 4)
	require.Empty(t, rows[2].Next)
	out, _, _ = strings.Cut(play(t.Context(), run{environ: env, command: "kit idempotency list -o jsonl --after " + rows[3].Next}), "[exit")
	require.Equal(t, 2, strings.Count(out, "\n"))
	require.NotContains(t, out, `"next"`)
	require.Contains(t, out, scopeOf(8))
}

func scope(n byte) []byte { return append(make([]byte, 31), n) }

// TestExitCodesOfKeyedOperations beside those of the transcripts: what the commands do where they may not, cannot, or are told to stop.
func TestExitCodesOfKeyedOperations(t *testing.T) {
	dsn, owner := kept(t, 1)
	verbs := []string{"list", "show " + scopeOf(1), "reconcile " + scopeOf(1) + " --verdict no-effect --operator ada --reason r", "retire v1 --operator ada --reason r"}
	exits := func(ctx context.Context, url string, verb string, code int) string {
		out := play(ctx, run{environ: []string{"DATABASE_URL=" + url}, command: "kit idempotency " + verb})
		require.Contains(t, out, fmt.Sprintf("[exit %d]", code), verb)
		require.NotContains(t, out, "secret", "no password")
		return out
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	stranger := migrationstest.RuntimeDSN(t, dsn) // granted core, and nothing of the records
	u, err := url.Parse(stranger)
	require.NoError(t, err)
	u.User = url.UserPassword(u.User.Username(), "another secret")
	for _, verb := range verbs {
		require.Contains(t, exits(t.Context(), stranger, verb, cli.ExitUnauthorised), "missing grant")
		exits(t.Context(), u.String(), verb, cli.ExitUnauthorised)
		require.Contains(t, exits(t.Context(), "postgres://u:secret@127.0.0.1:1/d?sslmode=disable", verb, cli.ExitFailed), "DB_UNAVAILABLE")
		require.Contains(t, exits(cancelled, dsn, verb, cli.ExitRefused), "it was cancelled")
	}

	// Who may settle and may not say so does not settle.
	mute := migrationstest.RuntimeDSN(t, dsn, migrations.Idempotency())
	role, err := url.Parse(mute)
	require.NoError(t, err)
	_, err = owner.Exec(t.Context(), `revoke all on caskeleton.operator_action from `+pgx.Identifier{role.User.Username()}.Sanitize())
	require.NoError(t, err)
	require.Contains(t, exits(t.Context(), mute, verbs[2], cli.ExitUnauthorised), "was not recorded")
	var state string
	require.NoError(t, owner.QueryRow(t.Context(), `select state from caskeleton.idempotency_record`).Scan(&state))
	require.Equal(t, "ABANDONED", state)

	granted := migrationstest.RuntimeDSN(t, dsn, migrations.Idempotency())
	require.Contains(t, exits(t.Context(), granted, verbs[2], cli.ExitDone), "settled as no-effect")
	require.Contains(t, exits(t.Context(), granted, verbs[1], cli.ExitDone), "idempotency.reconcile")
}

// A key whose record is gone is found by its parts as well, as long as somebody settled it.
func TestAKeyTellsWhoReleasedIt(t *testing.T) {
	const secret = "canary-0123456789-0123456789-0123456789"
	dsn, owner := kept(t, 1)
	scopes, err := guardOn(t, dsn, secret).Scopes(idempotency.Key{Method: "POST", Route: "/payments", Client: "canary-key"})
	require.NoError(t, err)
	_, err = owner.Exec(t.Context(), `update caskeleton.idempotency_record set scope = $1`, scopes[0][:])
	require.NoError(t, err)
	env := []string{"DATABASE_URL=" + dsn, "APP_IDEMPOTENCY_KEY_V1=" + secret}
	require.Contains(t, play(t.Context(), run{environ: env, command: "kit idempotency reconcile " + scopes[0].String() + " --verdict no-effect --operator ada --reason r"}), "[exit 0]")
	out := play(t.Context(), run{environ: env, command: "kit idempotency show --method POST --route /payments --key canary-key"})
	require.Contains(t, out, "gone: its record is deleted")
	require.Contains(t, out, "ada")
	require.Contains(t, out, "[exit 0]")
	require.NotContains(t, out, "canary")
}

// TestTheRunbooksCommandsAreCommands: each of them, with its flags, gets as far as to ask for what only its reader has.
func TestTheRunbooksCommandsAreCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/runbooks/abandoned-operation.md")
	require.NoError(t, err)
	commands := regexp.MustCompile("(?m)(?:^    |`)caskeleton (idempotency [^#`\n]*)").FindAllStringSubmatch(string(text), -1)
	require.Len(t, commands, 5)
	for _, c := range commands {
		command := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(c[1], "text")
		require.Regexp(t, `set DATABASE_URL|answer cannot be read: open answer.json`, play(t.Context(), run{command: "kit " + command}), command)
	}
}
