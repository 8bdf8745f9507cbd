package cli

import (
	"context"
	"log/slog"

	"caskeleton.dev/adapter/postgres/migrations"
)

// Streams returns the Migrator of the kit's streams and of a service's own.
func Streams(own ...migrations.Stream) NewMigrator {
	return func(dsn string, log *slog.Logger) (Migrator, error) {
		m, err := migrations.New(dsn, append(migrations.All(), own...), &migrations.Options{Logger: log})
		if err != nil {
			return nil, err
		}
		return migrator{m}, nil
	}
}

// migrator shows a [migrations.Migrator] as rows.
type migrator struct{ *migrations.Migrator }

func (m migrator) Up(ctx context.Context) ([]Migration, error) {
	applied, err := m.Migrator.Up(ctx)
	rows := make([]Migration, len(applied))
	for i, a := range applied {
		rows[i] = Migration{Stream: a.Stream, Version: a.Version, File: a.File, State: string(migrations.StateApplied)}
	}
	return rows, err
}

func (m migrator) Status(ctx context.Context) ([]Migration, error) {
	all, err := m.Migrator.Status(ctx)
	var rows []Migration
	for _, st := range all {
		for _, f := range st.Files {
			rows = append(rows, Migration{Stream: st.Stream, Version: f.Version, File: f.File, State: string(f.State), AppliedAt: f.AppliedAt})
		}
	}
	return rows, err
}
