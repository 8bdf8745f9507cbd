package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"caskeleton.dev/ops"
)

func (s *Session) idempotencyList() *cobra.Command {
	var p page
	c := &cobra.Command{Use: "list", Short: "List interrupted operations, the oldest first", Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return s.records(cmd, false, func(ctx context.Context, o *ops.Idempotency) error {
			abandoned, err := o.Abandoned(ctx, p.after, p.limit)
			if err != nil {
				return err
			}
			rows := make([]keyedRow, 0, len(abandoned.Entries))
			cells := make([][]string, 0, len(abandoned.Entries))
			for _, e := range abandoned.Entries {
				rows = append(rows, keyedRowOf(e))
				cells = append(cells, []string{e.Scope.String(), e.Tenant, e.Route, e.Owner, s.Time(e.Created), s.Time(e.Updated)})
			}
			if abandoned.Next != "" {
				rows[len(rows)-1].Next = abandoned.Next
			}
			return Write(s, cmd, rows, func(w io.Writer) error {
				if len(cells) == 0 {
					nothing := "nothing is abandoned"
					if p.after != "" {
						nothing = "nothing more is abandoned"
					}
					_, err := fmt.Fprintln(w, nothing)
					return err
				}
				if err := Table(w, []string{"SCOPE", "TENANT", "ROUTE", "OWNER", "CREATED", "ABANDONED"}, cells); err != nil || abandoned.Next == "" {
					return err
				}
				return p.next(w, s, cmd, abandoned.Next)
			})
		})
	}}
	p.flags(c, ops.MaxList)
	return c
}
