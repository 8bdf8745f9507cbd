package testprog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"caskeleton.dev/adapter/postgres/embedded"
)

// Program is an executable and what its environment must have for it to run.
type Program struct {
	Path string
	libs []string // where the libraries of an unpacked program are
}

// Find returns the program of that name, which answers to --version, from the named Debian package. Safe for concurrent use, also between
// processes.
func Find(ctx context.Context, name, pkg string) (Program, error) {
	if path, err := exec.LookPath(name); err == nil {
		return Program{Path: path}, nil
	}
	cache, err := embedded.CacheDir()
	if err == nil {
		p, fetchErr := finder{cache: cache, apt: "apt-get"}.find(ctx, name, pkg)
		if fetchErr == nil {
			return p, nil
		}
		err = fetchErr
	}
	return Program{}, fmt.Errorf("testprog: these tests need %s, which is not in PATH and could not be had from apt: install the package that has it (on Debian and Ubuntu: %s): %w",
		name, pkg, err)
}

// Command prepares the program to be run.
func (p Program) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Path, args...) //nolint:gosec // a program that the tests asked for
	cmd.WaitDelay = 5 * time.Second
	if len(p.libs) > 0 {
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(p.libs, ":"))
	}
	return cmd
}

// runs reports why the program does not run: an unpacked one may not outlive an upgrade of the system below it.
func (p Program) runs(ctx context.Context) error {
	out, err := p.Command(ctx, "--version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s --version: %w: %s", filepath.Base(p.Path), err, firstLine(out))
	}
	return nil
}

// unpacked finds the program in a tree of unpacked packages.
func unpacked(tree, name string) (Program, error) {
	for _, bin := range []string{"usr/bin", "usr/sbin", "bin", "sbin"} {
		path := filepath.Join(tree, bin, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			libs, err := filepath.Glob(filepath.Join(tree, "usr/lib/*-linux-*"))
			if err != nil {
				return Program{}, err
			}
			more, err := filepath.Glob(filepath.Join(tree, "lib/*-linux-*"))
			return Program{Path: path, libs: append(libs, more...)}, err
		}
	}
	return Program{}, errors.New("the packages hold no program " + name)
}

func firstLine(out []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	return string(line)
}
