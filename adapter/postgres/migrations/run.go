package migrations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
)

// run is one run of a stream, and the handler of goose's log, which alone tells how far a file came. Nothing of that log goes any
// further: it holds SQL.
type run struct {
	provider   *goose.Provider
	statements int // of the file that runs, so far
}

// place says where in its file err came from, as far as that is known: a failed COMMIT comes after the last statement.
func (r *run) place(err error) string {
	if r.statements == 0 {
		return ""
	}
	at := ""
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Position > 0 {
		at = fmt.Sprintf(", character %d", pg.Position)
	}
	return fmt.Sprintf(" (in or after statement %d%s)", r.statements, at)
}

func (r *run) Enabled(context.Context, slog.Level) bool { return true }

func (r *run) Handle(_ context.Context, record slog.Record) error {
	record.Attrs(func(a slog.Attr) bool {
		if a.Key == "statement" {
			r.statements++
		}
		return true
	})
	return nil
}

func (r *run) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r *run) WithGroup(string) slog.Handler { return r }
