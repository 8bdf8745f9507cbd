package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// pollEvery is how often a state that nobody announces (a lock, a starting server) is looked at.
const pollEvery = 20 * time.Millisecond

// tryLock takes the lock of an open file, unless another open file has it. It ends when the last descriptor of the open file is closed,
// in whichever process.
func tryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return false, fmt.Errorf("embedded: lock %s: %w", f.Name(), err)
		}
	}
}

// lock waits for the lock of the named file, which is made if missing. Closing the file gives the lock back.
func lock(ctx context.Context, root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		ok, err := tryLock(f)
		if ok {
			return f, nil
		}
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("embedded: wait for another process to let go of %s: %w", f.Name(), ctx.Err())
		}
	}
}
