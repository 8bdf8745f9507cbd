package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

const sharedPrefix = "pgtest-"

// SharedDataDir is where the server lives that all tests of this user share, one a major version: in memory where Linux has room for it,
// since making and dropping a database is mostly files made and removed; else in [CacheDir].
func SharedDataDir(major int) (string, error) {
	if dir := inMemory() + strconv.Itoa(major); roomFor(dir) {
		return dir, nil
	}
	dir, err := CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, sharedPrefix+strconv.Itoa(major)), nil
}

// inMemory is what the directories in memory begin with. The memory is everybody's, so that the name has the user.
func inMemory() string {
	return filepath.Join("/dev/shm", "caskeleton-"+strconv.Itoa(os.Geteuid())+"-"+sharedPrefix)
}

// roomFor reports whether dir is there already, or its file system has the gigabytes that a run of all tests may want at its worst.
func roomFor(dir string) bool {
	const enough = 4 << 30
	if _, err := os.Lstat(dir); err == nil {
		return true
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(dir), &fs); err != nil {
		return false
	}
	return fs.Bavail*uint64(fs.Bsize) >= enough //nolint:gosec // no block has a negative size
}

// StopShared ends the servers that tests left running for the next ones, and gives back the memory of those that live there; it is for
// `make stop-tests`.
func StopShared(ctx context.Context) error {
	dir, err := CacheDir()
	if err != nil {
		return err
	}
	_, errDisk := stopShared(ctx, filepath.Join(dir, sharedPrefix))
	stopped, err := stopShared(ctx, inMemory())
	for _, dir := range stopped {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return errors.Join(errDisk, err)
}

// stopShared returns the directories, of those that begin with prefix, where no server runs any more.
func stopShared(ctx context.Context, prefix string) ([]string, error) {
	found, err := filepath.Glob(prefix + "*")
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	var stopped []string
	var errs []error
	for _, dir := range found {
		if err := Stop(ctx, dir); err != nil {
			errs = append(errs, err)
			continue
		}
		stopped = append(stopped, dir)
	}
	return stopped, errors.Join(errs...)
}
