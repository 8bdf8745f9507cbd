package embedded

import (
	"fmt"
	"os"
	"syscall"
)

// trust refuses a directory that somebody other than root, the current user and PostgreSQL's user owns or may write to: whoever can
// change it could have us run programs, or read and write files, of their choice.
func trust(path string, acct account) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("embedded: %s: %w: it is a link or a file; remove it, or choose another path", path, ErrUntrusted)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("embedded: %s: %w: its owner cannot be told on this system", path, ErrUntrusted)
	}
	if uid := int(st.Uid); uid != 0 && uid != os.Geteuid() && uid != acct.uid {
		return fmt.Errorf("embedded: %s: %w: it is owned by uid %d; run as that user, remove it, or choose another path", path, ErrUntrusted, uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("embedded: %s: %w: others may write to it; run chmod go-w on it, or choose another path", path, ErrUntrusted)
	}
	return nil
}
