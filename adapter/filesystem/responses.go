package filesystem

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"caskeleton.dev/idempotency"
)

// Responses is an [idempotency.ResponseStore] in a directory. A file is written beside its place, synced and then renamed, so that it is there
// whole or not at all, and stays after a power failure. Safe for concurrent use, by any number of processes.
type Responses struct{ root *os.Root }

// NewResponses returns a store in dir, which it makes if need be. Close it.
func NewResponses(dir string) (*Responses, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Responses{root}, nil
}

// Close gives the directory back.
func (r *Responses) Close() error { return r.root.Close() }

// pending begins the names of files that are being written.
const pending = ".put-"

// abandonedAfter is longer than any write takes.
const abandonedAfter = 24 * time.Hour

// place returns the directory and the name of a ref's file: 256 directories, by the scope, keep each small.
func place(ref idempotency.Ref) (dir, name string, err error) {
	scope, operation, err := ref.Split()
	if err != nil {
		return "", "", err
	}
	name = strings.ReplaceAll(string(ref), "/", ".")
	if strings.Count(name, ".") != 2 || strings.ContainsAny(operation, "\\\x00") || len(name) > 200 {
		return "", "", fmt.Errorf("filesystem: %q cannot be the name of a file", ref)
	}
	return scope.String()[:2], name, nil
}

// Put implements [idempotency.ResponseStore].
func (r *Responses) Put(ctx context.Context, ref idempotency.Ref, object []byte) error {
	dir, name, err := place(ref)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	switch err := r.root.Mkdir(dir, 0o700); {
	case err == nil:
		if err := r.sync("."); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	temporary := path.Join(dir, pending+rand.Text())
	if err := r.write(temporary, object); err != nil {
		return errors.Join(err, r.remove(temporary))
	}
	if err := r.root.Rename(temporary, path.Join(dir, name)); err != nil {
		return errors.Join(err, r.remove(temporary))
	}
	return r.sync(dir)
}

func (r *Responses) write(name string, object []byte) error {
	f, err := r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(object)
	return errors.Join(err, f.Sync(), f.Close())
}

// sync makes the names in a directory durable.
func (r *Responses) sync(dir string) error {
	d, err := r.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (r *Responses) remove(name string) error {
	if err := r.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Get implements [idempotency.ResponseStore].
func (r *Responses) Get(ctx context.Context, ref idempotency.Ref) ([]byte, error) {
	dir, name, err := place(ref)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return r.root.ReadFile(path.Join(dir, name))
}

// Delete implements [idempotency.ResponseStore].
func (r *Responses) Delete(ctx context.Context, ref idempotency.Ref) error {
	dir, name, err := place(ref)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.remove(path.Join(dir, name))
}

// List implements [idempotency.ResponseStore].
func (r *Responses) List(ctx context.Context, after idempotency.Ref, limit int) ([]idempotency.Ref, error) {
	dirs, err := r.names(".")
	if err != nil {
		return nil, err
	}
	var refs []idempotency.Ref
	for _, dir := range dirs {
		if len(dir) != 2 || dir < string(after[:min(2, len(after))]) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		names, err := r.names(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasPrefix(name, pending) {
				r.sweep(path.Join(dir, name))
			}
			ref := idempotency.Ref(strings.ReplaceAll(name, ".", "/"))
			if _, _, err := place(ref); err == nil && ref > after {
				refs = append(refs, ref)
			}
		}
		if len(refs) >= limit {
			break
		}
	}
	slices.Sort(refs)
	return refs[:min(limit, len(refs))], nil
}

// sweep removes what a crash has left half-written. That it could not is no more than a file too many.
func (r *Responses) sweep(name string) {
	if info, err := r.root.Stat(name); err == nil && time.Since(info.ModTime()) > abandonedAfter {
		_ = r.remove(name)
	}
}

func (r *Responses) names(dir string) ([]string, error) {
	d, err := r.root.Open(dir)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, d.Close())
}
