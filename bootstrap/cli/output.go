package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// Write prints a result as -o asks: text calls text, json writes rows as one array, jsonl as one object a line.
func Write[T any](s *Session, cmd *cobra.Command, rows []T, text func(w io.Writer) error) error {
	w := cmd.OutOrStdout()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	switch s.format.value {
	case "json":
		enc.SetIndent("", "  ")
		if rows == nil {
			rows = []T{}
		}
		return enc.Encode(rows)
	case "jsonl":
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	return text(w)
}

// Table prints rows below a header, in columns. What could break the line, or drive a terminal, is shown quoted.
func Table(w io.Writer, header []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range append([][]string{header}, rows...) {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = printable(c)
		}
		if _, err := fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

func printable(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return "-"
	}
	return s
}

// Time is t as --time-format asks, for text; "" for a zero time. json and jsonl carry RFC 3339.
func (s *Session) Time(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case s.times.value == "iso":
		return t.UTC().Format(time.RFC3339)
	}
	d := s.now().Sub(t)
	if d < 0 {
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

// span is d in its largest whole unit.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + "d"
}
