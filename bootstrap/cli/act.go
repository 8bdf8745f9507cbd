package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"caskeleton.dev/audit"
	"caskeleton.dev/ops"
)

// actFlags adds --operator and --reason to a command that changes something. Both are required, which [ops] sees to.
func actFlags(c *cobra.Command, act *ops.Act) {
	c.Flags().StringVar(&act.Operator, "operator", "", "who does this; it is kept with what was changed")
	c.Flags().StringVar(&act.Reason, "reason", "", "why; it is kept likewise")
}

// actionRow is what an operator did, as it is shown.
type actionRow struct {
	At       time.Time       `json:"at"`
	Operator string          `json:"operator"`
	Verb     string          `json:"verb"`
	Reason   string          `json:"reason"`
	Changed  int64           `json:"changed"`
	Before   json.RawMessage `json:"before,omitempty"`
	After    json.RawMessage `json:"after,omitempty"`
}

func actionRows(entries []audit.Entry) []actionRow {
	rows := make([]actionRow, 0, len(entries))
	for _, e := range entries {
		rows = append(rows, actionRow{e.At, e.Operator, e.Verb, e.Reason, e.Changed, e.Before, e.After})
	}
	return rows
}

// actions prints what operators did below what they did it to, and nothing where they did nothing.
func (s *Session) actions(w io.Writer, rows []actionRow) error {
	if len(rows) == 0 {
		return nil
	}
	cells := make([][]string, 0, len(rows))
	for _, r := range rows {
		cells = append(cells, []string{s.Time(r.At), r.Operator, r.Verb, fmt.Sprint(r.Changed), r.Reason, string(r.After), string(r.Before)})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return Table(w, []string{"ACTED", "OPERATOR", "VERB", "CHANGED", "REASON", "AFTER", "BEFORE"}, cells)
}
