package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// superuser is the role that the cluster is made with.
const superuser = "postgres"

// ensureCluster makes the cluster, unless there is one, which must be of the same major version.
func (a *area) ensureCluster(ctx context.Context, in Installation, o Options) error {
	b, err := a.root.ReadFile(clusterDir + "/PG_VERSION")
	if errors.Is(err, fs.ErrNotExist) {
		return a.initdb(ctx, in, o)
	}
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	if made := strings.TrimSpace(string(b)); made != strconv.Itoa(in.Major) {
		return fmt.Errorf("embedded: %s was made by PostgreSQL %s, and the one to run is %s (%s): %w: install PostgreSQL %s, or remove %s to begin "+
			"with an empty database, or set DATABASE_URL", a.path, made, in.Version, in.BinDir, ErrDataVersion, made, a.path)
	}
	return nil
}

// initdb makes the cluster beside its place and moves it there when it is complete, so that an interrupted run leaves none.
func (a *area) initdb(ctx context.Context, in Installation, o Options) error {
	const unfinished, secret = clusterDir + ".new", "initdb-password"
	if err := a.root.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	password := rand.Text()
	defer func() { _ = a.root.Remove(secret) }()
	err := errors.Join(
		a.write(passwordFile, password),
		a.write(secret, password), a.give(secret),
		a.root.Mkdir(unfinished, 0o700), a.give(unfinished),
	)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	cmd := a.acct.command(ctx, filepath.Join(a.path, unfinished), filepath.Join(in.BinDir, "initdb"),
		"--pgdata", filepath.Join(a.path, unfinished), "--username", superuser, "--pwfile", filepath.Join(a.path, secret),
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-instructions")
	if o.FsyncOff {
		cmd.Args = append(cmd.Args, "--no-sync")
	}
	// An initdb that outlives us keeps the lock, so that nobody begins anew while it still writes.
	cmd.ExtraFiles = []*os.File{a.held}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("embedded: initdb in %s: %w: %s", a.path, errors.Join(err, ctx.Err()), lastLines(out, 3))
	}
	if err := a.root.Rename(unfinished, clusterDir); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	return nil
}

// write replaces a file of the area by one that its owner alone may read.
func (a *area) write(name, text string) error {
	if err := a.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return a.root.WriteFile(name, []byte(text), 0o600)
}

// lastLines returns the end of a program's output, as one line.
func lastLines(out []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
