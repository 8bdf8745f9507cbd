package canarytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// quoting are errors as applications and their drivers make them.
func quoting() map[string]error {
	raw := &pgconn.PgError{
		Code: "23505", Severity: "ERROR", Message: canary, Detail: canary, Hint: canary, Where: canary, InternalQuery: canary,
		SchemaName: named, TableName: named, ColumnName: named, ConstraintName: named, DataTypeName: named,
	}
	return map[string]error{
		"plain":      errors.New(canary),
		"wrapped":    fmt.Errorf("%s: %w", canary, errors.New(canary)),
		"joined":     errors.Join(errors.New(canary), raw),
		"coded":      fault.New(fault.NotFound, "orders.Get", errors.New(canary)),
		"of a 5xx":   fault.New(fault.DBUnavailable, canary+" 7", fmt.Errorf("%s: %w", canary, raw)),
		"a server's": raw,
		"diagnosed":  postgres.Diagnose(raw),
		"of fields":  fault.New(fault.Internal, "orders.Get", fault.Invalid("orders.Get", fault.Field{Path: canary, Problem: canary, Fix: canary})),
		"of the kit": fault.Textf("%d orders: %w", 7, errors.New(canary)),
	}
}

func (w *watch) guard(t *testing.T, db *postgres.DB) *idempotency.Guard {
	t.Helper()
	keys, err := idempotency.NewKeyring("1", bytes.Repeat([]byte(canary), 8))
	require.NoError(t, err)
	g, err := idempotency.New(pgidempotency.New(db), w.runner(t, db), keys, &idempotency.Options{Meter: w.meter, Logger: w.log})
	require.NoError(t, err)
	return g
}

func TestNothingOfARequest(t *testing.T) {
	w := newWatch(t)
	failures := quoting()
	fail := func(r *http.Request) error {
		of := r.Header.Get("X-Of")
		if err := failures[of]; err != nil {
			return err
		}
		panic(errors.New(canary + of))
	}
	guard := w.guard(t, w.open(t, postgres.Config{}, migrations.Idempotency()))
	call := w.serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("GET /things/{id}", func(_ http.ResponseWriter, r *http.Request) error { return fail(r) })
		m.HandleFunc("POST /things/{id}", func(rw http.ResponseWriter, r *http.Request) error {
			_, err := httpapi.ReadBody(rw, r, 10)
			return err
		})
		m.Handle("PUT /things/{id}", httpapi.Transactional(guard, httpapi.Policy{Logger: w.log}, func(_ context.Context, _ *tx.Tx, r *httpapi.Request) (*httpapi.Response, error) {
			return nil, fail(r.Request)
		}))
	})
	header := []string{
		"Content-Type", "application/json", "Authorization", "Bearer " + canary, "Cookie", "s=" + canary, "Idempotency-Key", canary, "If-Match", canary,
		"User-Agent", canary, "Referer", canary, "X-Request-Id", canary + " 7", "Traceparent", canary, "X-" + canary, canary, "X-Of", "",
	}
	path := "/things/" + canary + "?q=" + canary + "&" + canary
	for of := range failures {
		header[len(header)-1] = of
		call("GET", path, "", header...)
		call("PUT", path, `{"note":"`+canary+`"}`, header...)
	}
	header[len(header)-1] = "a panic"
	call("GET", path, "", header...)
	call("PUT", path, canary, header...)
	call("POST", path, canary+canary, header...)
	call("DELETE", path, canary, header...)
	call("GET", "/"+canary, canary, header...)
	w.silent(t, `"handler panicked"`, `"error":"orders.Get: NOT_FOUND"`, "constraint=n4med", `"error":"sqlstate=23505 (*pgconn.PgError)"`, `"error":"7 orders: *errors.errorString"`)
	require.Len(t, w.responses, 2*len(failures)+5)
	require.Contains(t, w.metrics(t), "idempotency")
}

// An answer is its caller's, and nobody else's.
func TestNothingOfAStoredResponse(t *testing.T) {
	w := newWatch(t)
	db := w.open(t, postgres.Config{}, migrations.Idempotency())
	guard := w.guard(t, db)
	call := w.serve(t, func(m *httpapi.Mux) {
		m.Handle("POST /things", httpapi.Transactional(guard, httpapi.Policy{Logger: w.log}, func(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) {
			return httpapi.JSON(http.StatusCreated, map[string]string{"secret": canary})
		}))
	})
	post := func(body string) {
		call("POST", "/things", body, "Content-Type", "application/json", "Idempotency-Key", canary)
	}
	post(canary)
	post(canary)
	require.Len(t, w.told(t), 2, "the first answer and its repeat")
	require.Contains(t, w.responses[1], canary)
	w.responses = nil

	post("another") // is refused
	exec(t, db, `update caskeleton.idempotency_record set payload = 'c4nary'`)
	post(canary) // cannot be read
	w.silent(t, "IDEMPOTENCY_KEY_REUSED", "INTERNAL")
	require.Len(t, w.responses, 2)
}
