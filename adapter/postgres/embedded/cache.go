package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// CacheDir returns, and makes, the directory that downloaded binaries are kept in, and the tests' shared server where memory is short:
// caskeleton in the user's cache directory, or in /var/cache under root, where PostgreSQL's user can read it. Where that cannot be had (no home), it is
// /var/tmp/caskeleton-cache-<uid>.
func CacheDir() (string, error) {
	var tried []error
	for _, base := range cacheBases() {
		err := makeCache(base)
		if err == nil {
			return base, nil
		}
		tried = append(tried, err)
	}
	return "", errors.Join(tried...)
}

func cacheBases() []string {
	last := filepath.Join("/var/tmp", "caskeleton-cache-"+strconv.Itoa(os.Geteuid()))
	if os.Geteuid() == 0 {
		return []string{"/var/cache/caskeleton", last}
	}
	if home, err := os.UserCacheDir(); err == nil {
		return []string{filepath.Join(home, "caskeleton"), last}
	}
	return []string{last}
}

func makeCache(path string) error {
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(path), mode); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	if err := os.Mkdir(path, mode); err == nil {
		if err := os.Chmod(path, mode); err != nil {
			return fmt.Errorf("embedded: %w", err)
		}
	}
	if err := trust(path, account{}); err != nil {
		return err
	}
	f, err := os.CreateTemp(path, "probe-")
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
