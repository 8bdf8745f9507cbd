package embedded

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"caskeleton.dev/adapter/postgres"
)

// systemBinDirs lists where PostgreSQL's server programs are: what PATH leads to, and where Debian, Homebrew and the PostgreSQL RPMs put them.
func systemBinDirs() []string {
	var dirs []string
	for _, program := range []string{"postgres", "pg_config"} {
		if p, err := exec.LookPath(program); err == nil {
			dirs = append(dirs, filepath.Dir(resolved(p)))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
	} {
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	return dirs
}

// fromSystem returns the newest PostgreSQL of the system that is new enough, or of the version asked for.
func (f finder) fromSystem(ctx context.Context) (Installation, error) {
	var best Installation
	reasons := []error{}
	for _, dir := range f.system {
		in, err := inspect(ctx, dir, f.acct)
		switch {
		case err != nil:
			reasons = append(reasons, err)
		case in.Major < postgres.MinVersion:
			reasons = append(reasons, fmt.Errorf("%s has PostgreSQL %s, and %d is the oldest supported", dir, in.Version, postgres.MinVersion))
		case f.major != 0 && in.Major != f.major:
			reasons = append(reasons, fmt.Errorf("%s has PostgreSQL %s, and %d is asked for", dir, in.Version, f.major))
		case in.Major > best.Major:
			best = in
		}
	}
	if best.Major > 0 {
		return best, nil
	}
	if len(reasons) == 0 {
		return best, errors.New("no PostgreSQL server programs in PATH or the usual places")
	}
	return best, errors.Join(reasons...)
}
