package httpapi_test

import (
	"bytes"
	"context"
	"net/http"
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

// fixture is a database, with a table for effects, and a guard on it.
type fixture struct {
	db    *postgres.DB
	guard *idempotency.Guard
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return openFixture(t, postgres.Config{DSN: migrationstest.DSN(t, migrations.Idempotency())}, nil)
}

// openFixture is newFixture on a database with the records in it.
func openFixture(t *testing.T, cfg postgres.Config, o *idempotency.Options) *fixture {
	t.Helper()
	f := &fixture{}
	var err error
	f.db, err = postgres.Open(t.Context(), cfg, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.db.Close(context.WithoutCancel(t.Context()))) })
	for _, sql := range []string{
		`create schema shop`,
		`create table shop.effect (name text, constraint canary_unique unique (name) deferrable initially deferred)`,
	} {
		_, err := f.db.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	f.guard = f.newGuard(t, nil, o)
	return f
}

func (f *fixture) newGuard(t *testing.T, ro *tx.RunnerOptions, o *idempotency.Options) *idempotency.Guard {
	t.Helper()
	runner, err := tx.NewRunner(f.db, ro)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("1", bytes.Repeat([]byte("k"), 32))
	require.NoError(t, err)
	g, err := idempotency.New(pgidempotency.New(f.db), runner, keys, o)
	require.NoError(t, err)
	return g
}

func (f *fixture) count(t *testing.T, from string) (n int) {
	t.Helper()
	require.NoError(t, f.db.QueryRow(t.Context(), `select count(*) from `+from).Scan(&n))
	return n
}

// serve returns a server whose POST /things/{id} is h.
func (f *fixture) serve(t *testing.T, p httpapi.Policy, h handler) *service {
	t.Helper()
	return serve(t, func(m *httpapi.Mux) { m.Handle("POST /things/{id}", httpapi.Transactional(f.guard, p, h)) })
}

type handler = func(ctx context.Context, t *tx.Tx, r *httpapi.Request) (*httpapi.Response, error)

// effect stores a row and then answers.
func effect(answer handler) handler {
	return func(ctx context.Context, t *tx.Tx, r *httpapi.Request) (*httpapi.Response, error) {
		q, err := postgres.Querier(t)
		if err != nil {
			return nil, err
		}
		if _, err := q.Exec(ctx, `insert into shop.effect (name) values ('a')`); err != nil {
			return nil, err
		}
		return answer(ctx, t, r)
	}
}

func created(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) {
	res, err := httpapi.JSON(http.StatusCreated, map[string]int{"n": 1})
	if err == nil {
		res.Header.Set("Location", "/things/1")
		res.Header.Set("ETag", `"1"`)
		res.Header.Set("Set-Cookie", "session=canary")
	}
	return res, err
}

// post sends a request to /things/1 with a key, unless that is "".
func post(t *testing.T, s *service, key, body string, header ...string) answer {
	t.Helper()
	return postTo(t, s, "/things/1", key, body, header...)
}

func postTo(t *testing.T, s *service, path, key, body string, header ...string) answer {
	t.Helper()
	if key != "" {
		header = append(header, "Idempotency-Key", key)
	}
	return s.do(t, http.MethodPost, path, body, append(header, "Content-Type", "application/json")...)
}
