package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// page is which part of a list is asked for. json and jsonl say where to go on as "next", in the last row.
type page struct {
	limit int
	after string
}

// flags adds --limit, of at most most, and --after.
func (p *page) flags(c *cobra.Command, most int) {
	c.Flags().IntVar(&p.limit, "limit", 100, fmt.Sprintf("how many at most, 1 to %d", most))
	c.Flags().StringVar(&p.after, "after", "", "go on behind this place, as the page before said")
}

// next writes the command that goes on behind a page.
func (p *page) next(w io.Writer, s *Session, c *cobra.Command, place string) error {
	words := []string{c.CommandPath()}
	if s.file != "" {
		words = append(words, "--config", shellWord(s.file))
	}
	if c.Flags().Changed("time-format") {
		words = append(words, "--time-format", s.times.value)
	}
	if c.Flags().Changed("limit") {
		words = append(words, "--limit", fmt.Sprint(p.limit))
	}
	_, err := fmt.Fprintf(w, "more: %s --after %s\n", strings.Join(words, " "), shellWord(place))
	return err
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,-]+$`)

// shellWord is s as a shell reads one word.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
