package intlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

const columnsSQL = `
select a.attname::text, format_type(a.atttypid, null), a.attnotnull,
  case when a.atttypid in ('bpchar'::regtype, 'varchar'::regtype) and a.atttypmod > 4 then a.atttypmod - 4 else 2147483647 end::int4,
  (a.atthasdef or a.attidentity <> '' or not a.attnotnull)
from pg_attribute a
where a.attrelid = to_regclass($1::text) and a.attnum > 0 and not a.attisdropped`

const keySQL = `
select exists (
    select from pg_index i
    where i.indrelid = to_regclass($1::text) and i.indisunique and i.indimmediate and i.indisvalid and i.indpred is null and i.indexprs is null
      and (select array_agg(a.attname::text order by a.attname::text) from pg_attribute a where a.attrelid = i.indrelid and a.attnum = any (i.indkey))
        = '{lock_key,region}'::text[]),
  coalesce((select string_agg(p, ', ') from unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) p where not has_table_privilege(to_regclass($1::text), p)), '')`

// column is one of the table's, as the catalog has it.
type column struct {
	typ             string
	notNull, filled bool // filled: an INSERT may leave it out
	room            int32
}

// Check returns an error that says what is wrong with the table, and what to do about it, or nil. It is for the start of a service: a Java side that was not
// migrated to 7.0 would otherwise show as an error of the first lock. It writes nothing.
func (s *Locks) Check(ctx context.Context) error {
	columns, err := s.columns(ctx)
	if err != nil {
		return err
	}
	_, old := columns["created_date"]
	_, current := columns["expired_after"]
	switch {
	case len(columns) == 0:
		return fmt.Errorf("intlock: there is no table %s; create it with schema-postgresql.sql of Spring Integration 7.0, or correct Options.Table", s.table)
	case old && !current:
		return fmt.Errorf("intlock: the table %s has the layout of Spring Integration 6.5 or older, without EXPIRED_AFTER, in which the holder's lease is not kept; "+
			"move all Java services to 7.0 and migrate the table, or use pglock", s.table)
	}
	for _, want := range []struct {
		name  string
		types []string
		room  int32
	}{
		{"lock_key", texts(), 36},
		{"region", texts(), maxRegion},
		{"client_id", texts(), 36},
		{"created_date", timestamps(), 0},
		{"expired_after", timestamps(), 0},
	} {
		c, ok := columns[want.name]
		delete(columns, want.name)
		switch {
		case !ok:
			return s.problem("has no column "+want.name, "create it anew")
		case !slices.Contains(want.types, c.typ):
			return s.problem(fmt.Sprintf("has a column %s of type %s", want.name, c.typ), "give it the type that it has there")
		case c.room < want.room:
			return s.problem(fmt.Sprintf("has a column %s for %d characters, where %d are needed", want.name, c.room, want.room), "widen it")
		case want.name == "expired_after" && !c.notNull:
			return s.problem("lets expired_after be null, as a row of Spring Integration 6.5 would, which nobody could ever take over",
				"delete such rows and set it NOT NULL")
		}
	}
	for name, c := range columns {
		if !c.filled {
			return s.problem("has a column "+name+" that a row must fill", "drop it, or give it a default")
		}
	}
	return s.checkKey(ctx)
}

func texts() []string      { return []string{"character", "character varying", "text"} }
func timestamps() []string { return []string{"timestamp without time zone"} }

func (s *Locks) columns(ctx context.Context) (map[string]column, error) {
	rows, err := s.db.Query(ctx, columnsSQL, s.table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns := map[string]column{}
	for rows.Next() {
		var name string
		var c column
		if err := rows.Scan(&name, &c.typ, &c.notNull, &c.room, &c.filled); err != nil {
			return nil, err
		}
		columns[name] = c
	}
	return columns, rows.Err()
}

func (s *Locks) checkKey(ctx context.Context) error {
	var unique bool
	var missing string
	switch err := s.db.QueryRow(ctx, keySQL, s.table).Scan(&unique, &missing); {
	case err != nil:
		return err
	case !unique:
		return s.problem("has no primary key (lock_key, region)", "add it")
	case missing != "":
		return fmt.Errorf("intlock: the role may not do all that a lock needs with the table %s; grant it %s", s.table, missing)
	}
	return nil
}

func (s *Locks) problem(what, fix string) error {
	return fmt.Errorf("intlock: the table %s %s; %s, as in schema-postgresql.sql of Spring Integration 7.0", s.table, what, fix)
}

// explain puts what Check finds in front of an error that says of the statement, or of a row, that it does not fit the table.
func (s *Locks) explain(ctx context.Context, err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !strings.Contains("22 23 3F 42", pg.Code[:2]) {
		return err
	}
	if why := s.Check(ctx); why != nil {
		return &tableError{why, err}
	}
	return err
}

// tableError tells the cause in words and keeps the server's.
type tableError struct{ why, cause error }

func (e *tableError) Error() string   { return e.why.Error() }
func (e *tableError) Unwrap() []error { return []error{e.why, e.cause} }
