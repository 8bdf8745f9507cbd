package migrations

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3/database"

	"caskeleton.dev/fault"
)

// history is what the database knows of one stream.
type history struct {
	applied map[int64]bool
	marks   map[int64]mark
}

type mark struct {
	file, checksum string
	appliedAt      time.Time
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readHistory runs plain SELECTs. Whether a table exists is asked of the catalog, which any role may read.
func readHistory(ctx context.Context, q querier, s Stream) (history, error) {
	h := history{applied: map[int64]bool{}, marks: map[int64]mark{}}
	err := each(ctx, q, s.tableName(), `select version_id from `+s.table()+` where version_id > 0 and is_applied`, nil, func(row *sql.Rows) error {
		var version int64
		err := row.Scan(&version)
		h.applied[version] = true
		return err
	})
	if err != nil {
		return h, err
	}
	const marks = `select version, file, checksum, applied_at from caskeleton.migration_checksum where stream = $1`
	err = each(ctx, q, "migration_checksum", marks, []any{s.Name}, func(row *sql.Rows) error {
		var version int64
		var m mark
		err := row.Scan(&version, &m.file, &m.checksum, &m.appliedAt)
		h.marks[version] = m
		return err
	})
	return h, err
}

func each(ctx context.Context, q querier, table, query string, args []any, visit func(*sql.Rows) error) error {
	exists, err := tableExists(ctx, q, table)
	if err != nil || !exists {
		return err
	}
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return readError(table, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := visit(rows); err != nil {
			return readError(table, err)
		}
	}
	return readError(table, rows.Err())
}

func readError(table string, err error) error {
	if err == nil {
		return nil
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == pgerrcode.InsufficientPrivilege {
		return fault.Textf("migrations: the role may not read %s.%s: grant it USAGE on the schema and SELECT on the table, as `migrate grants` does: %w", kitSchema, table, told(err))
	}
	return fault.Textf("migrations: read %s.%s: %w", kitSchema, table, told(err))
}

func tableExists(ctx context.Context, q querier, table string) (bool, error) {
	var ok bool
	err := q.QueryRowContext(ctx, `select exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1 and c.relname = $2)`, kitSchema, table).Scan(&ok)
	if err != nil {
		return false, fault.Textf("migrations: look for %s.%s: %w", kitSchema, table, told(err))
	}
	return ok, nil
}

// histories names the tables of all streams, also of those that only another binary knows.
func histories(ctx context.Context, q querier) ([]string, error) {
	var names string
	err := q.QueryRowContext(ctx, `select coalesce(string_agg(c.relname, ',' order by c.relname), '') from pg_catalog.pg_class c
		join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind = 'r' and c.relname ~ '^migrations_[a-z0-9_]+$'`, kitSchema).Scan(&names)
	if err != nil {
		return nil, fault.Textf("migrations: look for the histories of streams: %w", told(err))
	}
	return strings.FieldsFunc(names, func(r rune) bool { return r == ',' }), nil
}

func schemaExists(ctx context.Context, q querier, schema string) (bool, error) {
	var ok bool
	err := q.QueryRowContext(ctx, `select exists (select from pg_catalog.pg_namespace where nspname = $1)`, schema).Scan(&ok)
	if err != nil {
		return false, fault.Textf("migrations: look for schema %s: %w", schema, told(err))
	}
	return ok, nil
}

// store is goose's own for PostgreSQL, except that a mark is written with its checksum.
type store struct {
	database.Store
	source source
}

func newStore(s source) (*store, error) {
	inner, err := database.NewStore(database.DialectPostgres, s.table())
	if err != nil {
		return nil, fault.Textf("migrations: stream %s: %w", s.Name, err)
	}
	return &store{Store: inner, source: s}, nil
}

// CreateVersionTable makes goose's table by the statement that Plan shows.
func (s *store) CreateVersionTable(ctx context.Context, db database.DBTxConn) error {
	_, err := db.ExecContext(ctx, s.source.historySQL())
	return err
}

// Insert marks a file as applied. Its arguments are checked names, numbers and digests, so that the statement is the one that Plan shows.
func (s *store) Insert(ctx context.Context, db database.DBTxConn, req database.InsertRequest) error {
	sql := s.source.baselineSQL()
	for _, f := range s.source.files {
		if f.version == req.Version {
			sql = s.source.markSQL(f)
		}
	}
	_, err := db.ExecContext(ctx, sql)
	return err
}

// ensure leaves a history with its baseline, version 0. Goose would create it too, but takes a first creation that failed for done,
// and refuses a table that exists and is empty.
func (s *store) ensure(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	exists, err := tableExists(ctx, tx, s.source.tableName())
	if err != nil {
		return err
	}
	if !exists {
		if err := s.CreateVersionTable(ctx, tx); err != nil {
			return err
		}
	}
	marks, err := s.ListMigrations(ctx, tx)
	if err != nil {
		return err
	}
	if len(marks) > 0 {
		return nil
	}
	if err := s.Insert(ctx, tx, database.InsertRequest{Version: 0}); err != nil {
		return err
	}
	return tx.Commit()
}
