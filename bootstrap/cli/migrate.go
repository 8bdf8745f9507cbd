package cli

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"caskeleton.dev/adapter/postgres/migrations"
)

// migration is one version of one stream, as it is shown.
type migration struct {
	Stream    string    `json:"stream"`
	Version   int64     `json:"version"`
	File      string    `json:"file"`
	State     string    `json:"state"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
}

func migrateCommand(s *Session, own []migrations.Stream) *cobra.Command {
	group := &cobra.Command{Use: "migrate", Short: "Bring the database to what this binary needs"}
	sub := func(use, short string, run func(cmd *cobra.Command, m *migrations.Migrator) error) {
		group.AddCommand(&cobra.Command{Use: use, Short: short, Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := s.migrator(cmd, own)
			if err != nil {
				return err
			}
			return run(cmd, m)
		}})
	}
	sub("up", "Apply every pending migration", s.migrateUp)
	sub("status", "Show every migration and where it stands", s.migrateStatus)
	sub("verify", "Fail unless the database has what this binary needs; changes nothing", s.migrateVerify)
	return group
}

func (s *Session) migrator(cmd *cobra.Command, own []migrations.Stream) (*migrations.Migrator, error) {
	c, err := s.Config()
	if err != nil {
		return nil, err
	}
	dsn := c.DB.Migration()
	if !dsn.IsSet() {
		return nil, Refused("no database to migrate", "set APP_MIGRATION_DSN, or DATABASE_URL where one role does both")
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	return migrations.New(dsn.Reveal(), append(migrations.All(), own...), &migrations.Options{Logger: log})
}

func (s *Session) migrateUp(cmd *cobra.Command, m *migrations.Migrator) error {
	applied, failure := m.Up(cmd.Context())
	rows := make([]migration, 0, len(applied))
	cells := make([][]string, 0, len(applied))
	for _, a := range applied { // what was applied before a failure is told as well
		rows = append(rows, migration{Stream: a.Stream, Version: a.Version, File: a.File, State: string(migrations.StateApplied)})
		cells = append(cells, []string{a.Stream, fmt.Sprint(a.Version), a.File})
	}
	err := Write(s, cmd, rows, func(w io.Writer) error {
		if len(cells) > 0 {
			if err := Table(w, []string{"STREAM", "VERSION", "FILE"}, cells); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(w, "%d applied\n", len(cells))
		return err
	})
	if failure != nil {
		return failure
	}
	return err
}

func (s *Session) migrateStatus(cmd *cobra.Command, m *migrations.Migrator) error {
	all, err := m.Status(cmd.Context())
	if err != nil {
		return err
	}
	var rows []migration
	var cells [][]string
	for _, st := range all {
		for _, f := range st.Files {
			rows = append(rows, migration{Stream: st.Stream, Version: f.Version, File: f.File, State: string(f.State), AppliedAt: f.AppliedAt})
			cells = append(cells, []string{st.Stream, fmt.Sprint(f.Version), f.File, string(f.State), s.Time(f.AppliedAt)})
		}
	}
	return Write(s, cmd, rows, func(w io.Writer) error {
		return Table(w, []string{"STREAM", "VERSION", "FILE", "STATE", "APPLIED"}, cells)
	})
}

func (s *Session) migrateVerify(cmd *cobra.Command, m *migrations.Migrator) error {
	if err := m.Verify(cmd.Context()); err != nil {
		return err
	}
	type verdict struct {
		Verified bool `json:"verified"`
	}
	return Write(s, cmd, []verdict{{true}}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "the database has what this binary needs")
		return err
	})
}
