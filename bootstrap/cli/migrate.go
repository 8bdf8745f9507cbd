package cli

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/bootstrap/config"
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
		var only []string
		c := &cobra.Command{Use: use, Short: short, Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.migrationConfig()
			if err != nil {
				return err
			}
			m, err := migrator(cmd, c, own, only)
			if err != nil {
				return err
			}
			return run(cmd, m)
		}}
		c.Flags().StringSliceVar(&only, "stream", nil, "only this stream, and core; may be repeated")
		group.AddCommand(c)
	}
	sub("up", "Apply every pending migration", s.migrateUp)
	sub("plan", "Print the SQL that up would run, for psql; changes nothing", s.migratePlan)
	sub("status", "Show every migration and where it stands", s.migrateStatus)
	sub("verify", "Fail unless the database has what this binary needs; changes nothing", s.migrateVerify)
	group.AddCommand(s.grantsCommand(own), s.authorityCommand())
	return group
}

// migrationConfig is a configuration with a database to migrate.
func (s *Session) migrationConfig() (*config.Config, error) {
	c, err := s.Config()
	if err != nil {
		return nil, err
	}
	if !c.DB.Migration().IsSet() {
		return nil, Refused("no database to migrate", "set APP_MIGRATION_DSN, or DATABASE_URL where one role does both")
	}
	return c, nil
}

// migrator is for the streams that are switched on and the binary's own, or only some of them.
func migrator(cmd *cobra.Command, c *config.Config, own []migrations.Stream, only []string) (*migrations.Migrator, error) {
	on, err := c.DB.Streams()
	if err != nil {
		return nil, err
	}
	on = append(on, own...)
	if len(only) > 0 {
		if on, err = pick(on, only); err != nil {
			return nil, err
		}
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	return migrations.New(c.DB.Migration().Reveal(), on, &migrations.Options{Logger: log})
}

func pick(streams []migrations.Stream, only []string) ([]migrations.Stream, error) {
	var names []string
	for _, s := range streams {
		names = append(names, s.Name)
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return nil, Refused(fmt.Sprintf("no stream %q is switched on", name), "one of "+strings.Join(names, ", ")+"; APP_MIGRATION_STREAMS switches the kit's on")
		}
	}
	return slices.DeleteFunc(streams, func(s migrations.Stream) bool { return !slices.Contains(only, s.Name) }), nil
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

func (s *Session) migratePlan(cmd *cobra.Command, m *migrations.Migrator) error {
	type step struct {
		Stream  string `json:"stream"`
		Version int64  `json:"version"`
		File    string `json:"file"`
		SQL     string `json:"sql"`
	}
	plan, err := m.Plan(cmd.Context())
	if err != nil {
		return err
	}
	rows := make([]step, 0, len(plan))
	for _, p := range plan {
		rows = append(rows, step(p))
	}
	return Write(s, cmd, rows, func(w io.Writer) error {
		for i, r := range rows {
			if i > 0 {
				if _, err := fmt.Fprintln(w); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprintf(w, "-- stream %s, %s\n%s", r.Stream, cmp.Or(r.File, "its history"), r.SQL); err != nil {
				return err
			}
		}
		if len(rows) > 0 {
			return nil
		}
		_, err := fmt.Fprintln(w, "-- nothing is pending")
		return err
	})
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
