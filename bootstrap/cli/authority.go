package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"caskeleton.dev/adapter/postgres/pgoutbox"
)

// authorityRow is who records and ships events, and what the command did about it.
type authorityRow struct {
	Authority string `json:"authority"`
	Legacy    string `json:"legacy,omitempty"`
	Copied    int    `json:"copied"`
	Dead      int    `json:"dead"`
}

// authorityCommand shows or changes who records and ships events.
func (s *Session) authorityCommand() *cobra.Command {
	var legacy string
	dead := choice{"", []string{string(pgoutbox.DeadLeave), string(pgoutbox.DeadDeliver)}}
	c := &cobra.Command{
		Use: "authority [v1|v2]", Short: "Show who records and ships events, begin to take an outbox over (v1), or take it over for good (v2)",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && args[0] != "v1" && args[0] != "v2" {
				return Refused("the authority is v1 or v2", "see "+cmd.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.migrationConfig()
			if err != nil {
				return err
			}
			dsn := c.DB.Migration().Reveal()
			var row authorityRow
			said := ""
			switch {
			case len(args) == 0:
			case args[0] == "v1":
				if legacy == "" {
					return Refused("the legacy table is missing", "say --legacy, as in --legacy public.outbox_event")
				}
				if err := pgoutbox.YieldAuthority(cmd.Context(), dsn, legacy); err != nil {
					return err
				}
			default:
				taken, err := pgoutbox.TakeAuthority(cmd.Context(), dsn, pgoutbox.Dead(dead.value))
				if err != nil {
					return err
				}
				row.Copied, row.Dead = taken.Copied, taken.Dead
				if !taken.Already {
					said = fmt.Sprintf("%d undelivered events copied, %d dead ones left in the legacy table\n", taken.Copied, taken.Dead)
				}
			}
			a, err := pgoutbox.ReadAuthority(cmd.Context(), dsn)
			if err != nil {
				return err
			}
			row.Authority, row.Legacy = a.Version, a.Legacy
			return Write(s, cmd, []authorityRow{row}, func(w io.Writer) error {
				who := "v2: the kit records and delivers events"
				if a.Version == "v1" {
					who = "v1: events are recorded in " + a.Legacy + ", and the kit delivers none"
				}
				_, err := fmt.Fprintf(w, "%s%s\n", said, who)
				return err
			})
		},
	}
	c.Flags().StringVar(&legacy, "legacy", "", "with v1: the table of the outbox to take over, as public.outbox_event")
	c.Flags().Var(&dead, "dead", "with v2: leave events that were given up, or deliver them")
	return c
}
