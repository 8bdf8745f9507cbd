package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"caskeleton.dev/adapter/postgres/migrations"
)

// grantsCommand tells, or runs, what leaves the runtime role with its tables and nothing else.
func (s *Session) grantsCommand(own []migrations.Stream) *cobra.Command {
	var roles migrations.Roles
	var apply bool
	c := &cobra.Command{Use: "grants", Short: "Print the SQL that limits the runtime role to its tables, or run it", Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		c, err := s.migrationConfig()
		if err != nil {
			return err
		}
		if roles.Runtime == "" {
			return Refused("the runtime role is missing", "say --role, as in --role orders_app")
		}
		roles.StatementTimeout, roles.LockTimeout, roles.IdleTxTimeout = c.DB.StatementTimeout, c.DB.LockTimeout, c.DB.IdleTxTimeout
		m, err := migrator(cmd, c, own, nil)
		if err != nil {
			return err
		}
		grants := m.Grants
		if apply {
			grants = m.Grant
		}
		statements, err := grants(cmd.Context(), roles)
		if err != nil {
			return err
		}
		type row struct {
			SQL string `json:"sql"`
		}
		rows := make([]row, 0, len(statements))
		for _, sql := range statements {
			rows = append(rows, row{sql})
		}
		return Write(s, cmd, rows, func(w io.Writer) error {
			for _, r := range rows {
				if _, err := fmt.Fprintf(w, "%s;\n", r.SQL); err != nil {
					return err
				}
			}
			return nil
		})
	}}
	c.Flags().StringVar(&roles.Runtime, "role", "", "the role that the service works as")
	c.Flags().StringVar(&roles.Owner, "owner", "", "the role that migrates (default: the one of the DSN)")
	c.Flags().BoolVar(&apply, "apply", false, "run it, in one transaction")
	return c
}
