package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Stop ends the server of a data directory in order, whoever started it, and returns when it is gone. It finds the directory as [Start]
// does. It is no error where no server runs, or where there is no such directory.
func Stop(ctx context.Context, dataDir string) error {
	acct, err := currentAccount()
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(dataDir)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	paths := []string{resolved(abs)}
	if acct.drop {
		paths = append(paths, elsewhere(abs))
	}
	var errs []error
	for _, path := range paths {
		// Without a running file no server was ever launched there, and the directory is none of our business.
		if _, err := os.Lstat(filepath.Join(path, runningFile)); err == nil {
			errs = append(errs, stopAt(ctx, path, acct, syscall.SIGINT))
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("embedded: %w", err))
		}
	}
	return errors.Join(errs...)
}

func stopAt(ctx context.Context, path string, acct account, sig syscall.Signal) error {
	a, err := openArea(ctx, path, acct)
	if err != nil {
		return err
	}
	defer a.close()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for sent := (time.Time{}); ; {
		pid, running, err := a.holder()
		if err != nil || !running {
			return err
		}
		// A server that is just beginning may miss a signal; one that is ending does not mind another.
		if pid > 0 && time.Since(sent) > time.Second {
			if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("embedded: signal PostgreSQL in %s (pid %d): %w", path, pid, err)
			}
			sent = time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("embedded: PostgreSQL in %s (pid %d) has not stopped: %w", path, pid, ctx.Err())
		}
	}
}
