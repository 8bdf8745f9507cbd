package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Names inside a data directory; the package comment says what they are.
const (
	clusterDir   = "data"
	passwordFile = "password"
	portFile     = "port"
	logFile      = "server.log"
	lockFile     = "lock"
	runningFile  = "running"
)

// area is an open data directory, locked against every other start and stop. Files are reached through root, so that a link
// planted by PostgreSQL's user leads nowhere.
type area struct {
	path string
	acct account
	root *os.Root
	held *os.File
}

// place returns where the data directory really is: elsewhere, where the account cannot reach the one asked for.
func place(ctx context.Context, dataDir string, acct account) (path string, err error) {
	abs, err := filepath.Abs(dataDir)
	if err != nil {
		return "", fmt.Errorf("embedded: %w", err)
	}
	if !acct.drop {
		return resolved(abs), nil
	}
	near := abs
	if _, err := os.Stat(abs); errors.Is(err, fs.ErrNotExist) {
		near = filepath.Dir(abs)
		if err := os.MkdirAll(near, 0o755); err != nil { //nolint:gosec // PostgreSQL's user has to pass through
			return "", fmt.Errorf("embedded: %w", err)
		}
	}
	ok, err := acct.reaches(ctx, near)
	if err != nil || ok {
		return resolved(abs), err
	}
	return elsewhere(abs), nil
}

func resolved(abs string) string {
	if p, err := filepath.EvalSymlinks(abs); err == nil {
		return p
	}
	return abs
}

func elsewhere(abs string) string {
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join("/var/tmp", "caskeleton-"+hex.EncodeToString(sum[:8]))
}

// makeArea opens the area at path, making it where it is missing.
func makeArea(ctx context.Context, path string, acct account) (*area, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	err := os.Mkdir(path, 0o700)
	if err == nil && acct.drop {
		err = os.Chmod(path, 0o711) //nolint:gosec // PostgreSQL's user has to pass through to the cluster, and to nothing else
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	return openArea(ctx, path, acct)
}

// openArea opens the area at path and waits for its lock.
func openArea(ctx context.Context, path string, acct account) (*area, error) {
	if err := trust(path, acct); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	held, err := lock(ctx, root, lockFile)
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return &area{path: path, acct: acct, root: root, held: held}, nil
}

func (a *area) close() {
	_ = a.held.Close()
	_ = a.root.Close()
}

func (a *area) cluster() string { return filepath.Join(a.path, clusterDir) }

// give hands a file or directory of the area to PostgreSQL's user.
func (a *area) give(name string) error {
	if !a.acct.drop {
		return nil
	}
	return a.root.Lchown(name, a.acct.uid, a.acct.gid)
}
