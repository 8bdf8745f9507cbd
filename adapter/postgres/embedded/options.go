package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// Options say which server [Start] starts. FsyncOff, Port and Settings apply when the server is launched; one that already runs keeps its
// own.
type Options struct {
	// DataDir is where the server lives; it is required, and made if missing. Under root, a directory that PostgreSQL's user cannot reach
	// is replaced by /var/tmp/caskeleton-<hash of the path>, which is logged.
	DataDir string
	// Database is made if missing, and is the one that the DSN names. "" means caskeleton.
	Database string
	// Port to listen on. 0 means the port of the last time if it is free, else any.
	Port int
	// FsyncOff trades the safety of the data for speed: for tests alone.
	FsyncOff bool
	// Settings are more settings of postgresql.conf; they win over those that this package chooses.
	Settings map[string]string
	// BinDir has the initdb and postgres to use. "" means those of [Find].
	BinDir string
	// Logger is told what is fetched, started, attached to and moved. nil means slog.Default().
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.DataDir == "" {
		return o, errors.New("embedded: DataDir is required: name a directory for the server's data")
	}
	if o.Port < 0 || o.Port > 65535 {
		return o, fmt.Errorf("embedded: Port %d is not a TCP port: use 1 to 65535, or 0 for any free one", o.Port)
	}
	if o.Database == "" {
		o.Database = "caskeleton"
	}
	if len(o.Database) > 63 || strings.ContainsRune(o.Database, 0) {
		return o, fmt.Errorf("embedded: Database %q is no database name: use 1 to 63 bytes without NUL", o.Database)
	}
	name := regexp.MustCompile(`^[a-z_][a-z0-9_.]*$`)
	for k, v := range o.Settings {
		if !name.MatchString(k) || strings.ContainsRune(v, 0) {
			return o, fmt.Errorf("embedded: Settings has %q=%q, which is no PostgreSQL setting: use lower-case names without spaces", k, v)
		}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}

// settings returns what the server is launched with: small, quiet, local and in UTC.
func (o Options) settings(port int) map[string]string {
	s := map[string]string{
		"port":                    strconv.Itoa(port),
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"max_connections":         "100",
		"shared_buffers":          "128MB",
		"max_wal_size":            "256MB",
		"jit":                     "off",
		"log_checkpoints":         "off",
	}
	if o.FsyncOff {
		s["fsync"], s["full_page_writes"] = "off", "off"
	}
	maps.Copy(s, o.Settings)
	return s
}
