package testprog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

const (
	fetchTimeout = 5 * time.Minute
	pollEvery    = 20 * time.Millisecond
)

type finder struct {
	cache string // directory
	apt   string // the apt-get to call
}

// find returns the unpacked program, and fetches it where there is none that runs.
func (f finder) find(ctx context.Context, name, pkg string) (Program, error) {
	apt, err := exec.LookPath(f.apt)
	if err != nil {
		return Program{}, errors.New(f.apt + " is not in PATH")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	tree := filepath.Join(f.cache, "apt-"+pkg)
	held, err := lock(ctx, tree+".lock")
	if err != nil {
		return Program{}, err
	}
	defer held.Close()
	if p, err := unpacked(tree, name); err == nil && p.runs(ctx) == nil {
		return p, nil
	}
	// Whoever left these behind is dead, or the lock were still theirs.
	scratch := tree + ".fetching"
	if err := errors.Join(os.RemoveAll(scratch), os.RemoveAll(tree)); err != nil {
		return Program{}, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	fresh, err := aptGet{apt: apt, dir: scratch}.unpack(ctx, pkg)
	if err != nil {
		return Program{}, err
	}
	if err := os.Rename(fresh, tree); err != nil {
		return Program{}, err
	}
	p, err := unpacked(tree, name)
	if err != nil {
		return Program{}, err
	}
	return p, p.runs(ctx)
}

// aptGet is apt with a state of its own in dir, so that it needs no root and no lock of the system's.
type aptGet struct{ apt, dir string }

// missing matches the lines in which a simulated installation names what this system lacks.
var missing = regexp.MustCompile(`(?m)^Inst (\S+)`)

// unpack downloads pkg and what it depends on beyond the installed packages, and returns the tree that they make up. apt verifies them.
func (a aptGet) unpack(ctx context.Context, pkg string) (string, error) {
	tree, debs := filepath.Join(a.dir, "tree"), filepath.Join(a.dir, "debs")
	for _, d := range []string{"state/lists/partial", "cache/archives/partial", "log", "tree", "debs"} {
		if err := os.MkdirAll(filepath.Join(a.dir, d), 0o755); err != nil { //nolint:gosec // the programs run as other users too
			return "", err
		}
	}
	if _, err := a.run(ctx, debs, "update"); err != nil {
		return "", err
	}
	plan, err := a.run(ctx, debs, "--simulate", "--no-install-recommends", "install", pkg)
	if err != nil {
		return "", err
	}
	args := []string{"download"}
	for _, m := range missing.FindAllStringSubmatch(string(plan), -1) {
		args = append(args, m[1])
	}
	if len(args) == 1 { // it is installed, though its program is not in PATH
		args = append(args, pkg)
	}
	if _, err := a.run(ctx, debs, args...); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return "", err
	}
	for _, deb := range files {
		if _, err := output(exec.CommandContext(ctx, "dpkg-deb", "--extract", deb, tree)); err != nil {
			return "", err
		}
	}
	return tree, nil
}

func (a aptGet) run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	all := append([]string{
		"-q", "-o", "Dir::State=" + filepath.Join(a.dir, "state"), "-o", "Dir::State::status=/var/lib/dpkg/status",
		"-o", "Dir::Cache=" + filepath.Join(a.dir, "cache"), "-o", "Dir::Log=" + filepath.Join(a.dir, "log"),
		"-o", "APT::Sandbox::User=", // root's apt would download as a user who may not write here
		"-o", "Acquire::Retries=2",
	}, args...)
	cmd := exec.CommandContext(ctx, a.apt, all...) //nolint:gosec // apt
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	return output(cmd)
}

func output(cmd *exec.Cmd) ([]byte, error) {
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, firstLine(exit.Stderr))
	}
	return out, err
}

// lock waits for the lock of the file, which is made if missing. Closing the file gives it back, and so does the end of the process.
func lock(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another process that fetches the same: %w", ctx.Err()), f.Close())
		}
	}
}
