package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
)

const sharedPrefix = "pgtest-"

// SharedDataDir is where the server lives that all tests of this user share, one a major version.
func SharedDataDir(major int) (string, error) {
	dir, err := CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, sharedPrefix+strconv.Itoa(major)), nil
}

// StopShared ends the servers that tests left running for the next ones; it is for `make stop-tests`.
func StopShared(ctx context.Context) error {
	dir, err := CacheDir()
	if err != nil {
		return err
	}
	return stopShared(ctx, dir)
}

func stopShared(ctx context.Context, cache string) error {
	found, err := filepath.Glob(filepath.Join(cache, sharedPrefix+"*"))
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	var errs []error
	for _, d := range found {
		errs = append(errs, Stop(ctx, d))
	}
	return errors.Join(errs...)
}
