package bootstrap

import (
	"io"
	"log/slog"

	"caskeleton.dev/bootstrap/config"
)

// NewLogger returns the service's logger: JSON, or text in the dev profile, where people read it.
func NewLogger(c *config.Config, w io.Writer) *slog.Logger {
	if c.Profile == config.Dev {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(slog.NewJSONHandler(w, nil))
}
