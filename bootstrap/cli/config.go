package cli

import (
	"io"

	"github.com/spf13/cobra"
)

func configCommand(s *Session) *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Look at the configuration"}
	group.AddCommand(&cobra.Command{
		Use:   "print",
		Short: "Show the effective values and where each comes from, secrets hidden",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.Config()
			if err != nil {
				return err
			}
			all := c.Settings()
			return Write(s, cmd, all, func(w io.Writer) error {
				rows := make([][]string, 0, len(all))
				for _, v := range all {
					rows = append(rows, []string{v.Key, v.Value, string(v.Origin), v.Env})
				}
				return Table(w, []string{"KEY", "VALUE", "ORIGIN", "VARIABLE"}, rows)
			})
		},
	})
	return group
}
