package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what one binary was made from.
type build struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
}

func versionCommand(s *Session, app App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show what this binary was built from",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := buildOf(app)
			return Write(s, cmd, []build{b}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s %s (%s)\n", b.Name, b.Version, b.Go)
				return err
			})
		},
	}
}

func buildOf(app App) build {
	b := build{Name: app.Name, Version: app.Version, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}
