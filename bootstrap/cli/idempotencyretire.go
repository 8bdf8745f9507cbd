package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"caskeleton.dev/ops"
)

func (s *Session) idempotencyRetire() *cobra.Command {
	var act ops.Act
	c := &cobra.Command{
		Use: "retire version", Short: "Forget a version of the secret that no record is of, once no instance signs by it",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Refused("say which version of the secret", "give the name behind APP_IDEMPOTENCY_KEY_, in lower case")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.records(cmd, false, func(ctx context.Context, o *ops.Idempotency) error {
				if err := o.RetireKey(ctx, args[0], act); err != nil {
					return err
				}
				type retired struct {
					Version string `json:"version"`
					Changed int    `json:"changed"`
				}
				return Write(s, cmd, []retired{{args[0], 1}}, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "%s is retired: instances start without it\n", printable(args[0]))
					return err
				})
			})
		},
	}
	actFlags(c, &act)
	return c
}
