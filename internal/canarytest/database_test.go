package canarytest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/tx"
)

// open connects to a migrated database, the way a service does.
func (w *watch) open(t *testing.T, cfg postgres.Config, streams ...migrations.Stream) *postgres.DB {
	t.Helper()
	w.dsn = migrationstest.DSN(t, streams...)
	cfg.DSN = w.dsn
	db, err := postgres.Open(t.Context(), cfg, &postgres.Options{Meter: w.meter, Logger: w.log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.WithoutCancel(t.Context()))) })
	return db
}

func (w *watch) runner(t *testing.T, db *postgres.DB) *tx.Runner {
	t.Helper()
	r, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: w.log})
	require.NoError(t, err)
	return r
}

func exec(t *testing.T, db *postgres.DB, sql string) {
	t.Helper()
	_, err := db.Exec(t.Context(), sql)
	require.NoError(t, err)
}

// trap makes every write of a table fail with an error that quotes.
func trap(t *testing.T, db *postgres.DB, table string) {
	t.Helper()
	exec(t, db, `create or replace function public.trap() returns trigger language plpgsql as $$ begin
		raise exception 'c4nary' using errcode = 'P0001', detail = 'c4nary', hint = 'c4nary', schema = 'n4med', table = 'n4med', column = 'n4med', constraint = 'n4med', datatype = 'n4med';
	end $$`)
	exec(t, db, `create trigger trap before insert or update or delete on `+table+` for each statement execute function public.trap()`)
}

// serve returns a server with the kit's middleware, and a call of it whose answer is watched. A request is in the program's span.
func (w *watch) serve(t *testing.T, routes func(m *httpapi.Mux)) func(method, path, body string, header ...string) {
	t.Helper()
	mux := httpapi.NewMux(w.log)
	routes(mux)
	h := httpapi.Wrap(mux, w.log)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(rw, r.WithContext(context.WithoutCancel(w.ctx)))
	}))
	t.Cleanup(s.Close)
	return func(method, path, body string, header ...string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		res, err := s.Client().Do(r)
		require.NoError(t, err)
		w.heard(t, res)
	}
}

func TestNothingThatSQLSays(t *testing.T) {
	type plant struct {
		sql  string
		args []any
		says string // by the log
	}
	const where = "schema=n4med table=n4med_order"
	plants := map[string]plant{
		"parameter":         {`select $1::text::int8`, []any{canary}, "sqlstate=22P02"},
		"literal":           {`select 'c4nary'::int8`, nil, "sqlstate=22P02"},
		"syntax":            {`selec c4nary`, nil, "sqlstate=42601"},
		"name":              {`select c4nary from n4med.n4med_order`, nil, "sqlstate=42703"},
		"detail":            {`insert into n4med.n4med_order values ('c4nary', 1), ('c4nary', 1)`, nil, where + " constraint=n4med_key"},
		"check":             {`insert into n4med.n4med_order values ('c4nary', -1)`, nil, where + " constraint=n4med_amount"},
		"column":            {`insert into n4med.n4med_order values ('c4nary', null)`, nil, where + " column=n4med_amount"},
		"context":           {`do $$ begin perform length('c4nary') / 0; end $$`, nil, "sqlstate=22012"},
		"raised":            {`do $$ begin raise exception 'c4nary' using detail = 'c4nary', hint = 'c4nary'; end $$`, nil, "sqlstate=P0001"},
		"raised as a kit's": {`do $$ begin raise exception 'c4nary' using errcode = '40001', detail = 'c4nary', constraint = 'n4med'; end $$`, nil, "sqlstate=40001"},
		"argument":          {`select $1::int8`, []any{struct{ C4nary string }{canary}}, "postgres"},
		"too many":          {`select $1::text`, []any{canary, canary}, "postgres"},
	}
	for _, mode := range []string{"cache_statement", "cache_describe", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			w := newWatch(t)
			db := w.open(t, postgres.Config{ExecMode: mode}, migrations.Core())
			exec(t, db, `create schema n4med`)
			exec(t, db, `create table n4med.n4med_order (name text constraint n4med_key primary key, n4med_amount int not null constraint n4med_amount check (n4med_amount > 0))`)
			runner := w.runner(t, db).With(tx.Options{Retry: tx.Retry{Attempts: 2}})
			in := map[string]func(ctx context.Context, p plant) error{
				"bare": func(ctx context.Context, p plant) error {
					_, err := db.Exec(ctx, p.sql, p.args...)
					return err
				},
				"write": func(ctx context.Context, p plant) error {
					return runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error { return run(ctx, t, p.sql, p.args) })
				},
				"hook": func(ctx context.Context, p plant) error {
					return runner.InWrite(ctx, func(_ context.Context, t *tx.Tx) error {
						return t.AfterCommit(func(ctx context.Context) error {
							_, err := db.Exec(ctx, p.sql, p.args...)
							return err
						})
					})
				},
			}
			call := w.serve(t, func(m *httpapi.Mux) {
				m.HandleFunc("GET /{way}/{plant}", func(_ http.ResponseWriter, r *http.Request) error {
					return in[r.PathValue("way")](r.Context(), plants[r.URL.Query().Get("of")])
				})
			})
			for way := range in {
				for name, p := range plants {
					w.lines.b.Reset()
					call("GET", "/"+way+"/c4nary?of="+strings.ReplaceAll(name, " ", "+"), "")
					w.silent(t, p.says)
				}
			}
			require.Contains(t, w.metrics(t), "db.pool.acquire")
		})
	}
}

func run(ctx context.Context, t *tx.Tx, sql string, args []any) error {
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, sql, args...)
	return err
}
