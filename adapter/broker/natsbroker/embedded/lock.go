package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const lockFile = "lock"

// lock takes the data directory for this process. The kernel gives it back when the process ends, however it ends. nats-server itself has
// no such lock: two of them on one directory destroy each other's streams.
func lock(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("embedded: %w: %s; stop the other process, or name another DataDir", ErrInUse, dir)
	default:
		err = fmt.Errorf("embedded: lock %s: %w", f.Name(), err)
	}
	return nil, errors.Join(err, f.Close())
}
