package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
)

// Migrator brings one database to what a binary needs.
type Migrator interface {
	// Up applies what is pending and returns what it applied, without the times, also where it fails half-way.
	Up(ctx context.Context) ([]Migration, error)
	// Status returns every version, by stream and number, and changes nothing.
	Status(ctx context.Context) ([]Migration, error)
	// Verify returns nil when the database has what the binary needs, and changes nothing.
	Verify(ctx context.Context) error
}

// NewMigrator makes a Migrator for the database at dsn, which logs what it waits for and warns of. Its errors must not hold dsn.
type NewMigrator func(dsn string, log *slog.Logger) (Migrator, error)

// Migration is one version of one stream.
type Migration struct {
	Stream    string    `json:"stream"`
	Version   int64     `json:"version"`
	File      string    `json:"file"`
	State     string    `json:"state"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
}

func migrateCommand(s *Session, open NewMigrator) *cobra.Command {
	group := &cobra.Command{Use: "migrate", Short: "Bring the database to what this binary needs"}
	sub := func(use, short string, run func(cmd *cobra.Command, m Migrator) error) {
		group.AddCommand(&cobra.Command{Use: use, Short: short, Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := s.migrator(cmd, open)
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

func (s *Session) migrator(cmd *cobra.Command, open NewMigrator) (Migrator, error) {
	c, err := s.Config()
	if err != nil {
		return nil, err
	}
	dsn := c.DB.Migration()
	if !dsn.IsSet() {
		return nil, Refused("no database to migrate", "set APP_MIGRATION_DSN, or DATABASE_URL where one role does both")
	}
	return open(dsn.Reveal(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
}

func (s *Session) migrateUp(cmd *cobra.Command, m Migrator) error {
	applied, failure := m.Up(cmd.Context())
	err := Write(s, cmd, applied, func(w io.Writer) error {
		if len(applied) > 0 {
			rows := make([][]string, 0, len(applied))
			for _, m := range applied {
				rows = append(rows, []string{m.Stream, fmt.Sprint(m.Version), m.File})
			}
			if err := Table(w, []string{"STREAM", "VERSION", "FILE"}, rows); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(w, "%d applied\n", len(applied))
		return err
	})
	if failure != nil {
		return failure
	}
	return err
}

func (s *Session) migrateStatus(cmd *cobra.Command, m Migrator) error {
	all, err := m.Status(cmd.Context())
	if err != nil {
		return err
	}
	return Write(s, cmd, all, func(w io.Writer) error {
		rows := make([][]string, 0, len(all))
		for _, m := range all {
			rows = append(rows, []string{m.Stream, fmt.Sprint(m.Version), m.File, m.State, s.Time(m.AppliedAt)})
		}
		return Table(w, []string{"STREAM", "VERSION", "FILE", "STATE", "APPLIED"}, rows)
	})
}

func (s *Session) migrateVerify(cmd *cobra.Command, m Migrator) error {
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
