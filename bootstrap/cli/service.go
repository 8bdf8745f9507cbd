package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"caskeleton.dev/adapter/postgres/embedded"
	"caskeleton.dev/bootstrap"
)

// ServiceCommands returns the commands of a service's own binary: "up" serves until it is told to stop, and "stop" ends the embedded
// PostgreSQL that "up" leaves running.
func ServiceCommands(s bootstrap.Service) []Command {
	return []Command{
		func(session *Session) *cobra.Command {
			return &cobra.Command{Use: "up", Short: "Serve until stopped", Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error {
				c, err := session.Config()
				if err != nil {
					return err
				}
				return bootstrap.Run(cmd.Context(), c, s, cmd.OutOrStdout(), bootstrap.NewLogger(c, cmd.ErrOrStderr()))
			}}
		},
		func(session *Session) *cobra.Command {
			return &cobra.Command{Use: "stop", Short: "Stop the embedded PostgreSQL", Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error {
				c, err := session.Config()
				if err != nil {
					return err
				}
				if err := embedded.Stop(cmd.Context(), bootstrap.PostgresDir(c)); err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), "stopped")
				return err
			}}
		},
	}
}
