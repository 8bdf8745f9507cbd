package migrations

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// file is one migration, checked when the Migrator is made, so that a mistake stops a test and not a deployment.
type file struct {
	name     string
	version  int64
	checksum string
	inTx     bool
	index    *index // what a CREATE INDEX CONCURRENTLY file builds
}

type index struct{ schema, name string }

var (
	fileName    = regexp.MustCompile(`^([0-9]{5})_[a-z0-9][a-z0-9_]*\.sql$`)
	annotation  = regexp.MustCompile(`(?im)^[ \t]*--[ \t]*\+goose[ \t]+(.*?)[ \t\r]*$`)
	concurrent  = regexp.MustCompile(`^(create (unique )?index|drop index|reindex .*) concurrently\b`)
	repeatable  = regexp.MustCompile(`^(create (unique )?index concurrently if not exists|drop index concurrently if exists)\b`)
	createIndex = regexp.MustCompile(`^create (?:unique )?index concurrently if not exists ([a-z_][a-z0-9_]*) on (?:only )?([a-z_][a-z0-9_]*)\.`)
	end         = regexp.MustCompile(`^end( work| transaction)?( and( no)? chain)?$`) // COMMIT by another name
	atomicBody  = regexp.MustCompile(`\bbegin atomic\b`)
	sessionLock = regexp.MustCompile(`(?i)\b(pg_(try_)?advisory_(un)?lock(_shared|_all)?|discard\s+all)\b`)
	transaction = regexp.MustCompile(`^(begin|start transaction|commit|rollback|abort|prepare transaction)\b`)
)

func readFiles(s Stream) ([]file, error) {
	entries, err := fs.ReadDir(s.FS, ".")
	if err != nil {
		return nil, fmt.Errorf("migrations: stream %s: read its folder: %w", s.Name, err)
	}
	var out []file
	for _, e := range entries {
		ext := path.Ext(e.Name())
		if e.IsDir() || (ext != ".sql" && ext != ".go") {
			continue
		}
		f, err := readFile(s.FS, e.Name())
		if err != nil {
			return nil, fmt.Errorf("migrations: stream %s: %s: %w", s.Name, e.Name(), err)
		}
		if n := len(out); n > 0 && out[n-1].version == f.version {
			return nil, fmt.Errorf("migrations: stream %s: %s and %s have the same version: renumber the one that was never applied", s.Name, out[n-1].name, f.name)
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("migrations: stream %s has no files: add 00001_name.sql at the root of its FS, or leave the stream out", s.Name)
	}
	return out, nil
}

func readFile(dir fs.FS, name string) (file, error) {
	m := fileName.FindStringSubmatch(name)
	if m == nil {
		return file{}, fmt.Errorf("the name must be five digits, an underscore, lower-case words and .sql: rename it like 00001_orders.sql")
	}
	version, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || version == 0 {
		return file{}, fmt.Errorf("version 00000 is the empty schema: begin at 00001")
	}
	body, err := fs.ReadFile(dir, name)
	if err != nil {
		return file{}, err
	}
	// A checkout may rewrite line ends; the file is the same all the same.
	body = bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
	sum := sha256.Sum256(body)
	f := file{name: name, version: version, checksum: hex.EncodeToString(sum[:]), inTx: true}
	return f, f.check(string(body))
}

func (f *file) check(body string) error {
	var up bool
	for _, m := range annotation.FindAllStringSubmatch(body, -1) {
		switch a := strings.ToUpper(m[1]); a {
		case "UP":
			up = true
		case "DOWN":
			return fmt.Errorf("has a Down section, and migrations only go forward: undo it with a new file")
		case "NO TRANSACTION":
			f.inTx = false
		case "STATEMENTBEGIN", "STATEMENTEND":
		default:
			return fmt.Errorf("annotation %q is not supported: only Up, NO TRANSACTION, StatementBegin and StatementEnd are", m[1])
		}
	}
	if !up {
		return fmt.Errorf(`has no "-- +goose Up" line: begin the file with one`)
	}
	if m := sessionLock.FindString(calls(body)); m != "" {
		return fmt.Errorf("calls %s, and the migration lock is one of the session's advisory locks, which it would give up or hide: remove it, or use pg_advisory_xact_lock", m)
	}
	statements := splitStatements(body)
	if f.inTx {
		return checkInTx(statements)
	}
	if len(statements) != 1 {
		return fmt.Errorf("is marked NO TRANSACTION and holds %d statements: give each a file of its own, since statements sent in one message form a transaction, and those of several messages can be half done", len(statements))
	}
	if concurrent.MatchString(statements[0]) && !strings.HasPrefix(statements[0], "reindex") && !repeatable.MatchString(statements[0]) {
		return fmt.Errorf("must be safe to run again after an interruption: write CREATE INDEX CONCURRENTLY IF NOT EXISTS, or DROP INDEX CONCURRENTLY IF EXISTS")
	}
	if m := createIndex.FindStringSubmatch(statements[0]); m != nil {
		f.index = &index{schema: m[2], name: m[1]}
	} else if strings.HasPrefix(statements[0], "create ") && concurrent.MatchString(statements[0]) {
		return fmt.Errorf("names its index or schema in a way that an invalid index of an interruption could not be found by: write CREATE INDEX CONCURRENTLY IF NOT EXISTS name ON schema.table, lower case and unquoted")
	}
	return nil
}

func checkInTx(statements []string) error {
	if len(statements) == 0 {
		return fmt.Errorf("holds no statement: delete it, or write one")
	}
	if i := slices.IndexFunc(statements, concurrent.MatchString); i >= 0 {
		return fmt.Errorf(`statement %d is CONCURRENTLY, which PostgreSQL refuses in a transaction: move it to a file of its own with "-- +goose NO TRANSACTION"`, i+1)
	}
	inBody := false // of a BEGIN ATOMIC function, whose parts look like statements
	controls := func(s string) bool {
		inBody = inBody || atomicBody.MatchString(s)
		if end.MatchString(s) {
			was := inBody
			inBody = false
			return !was
		}
		return transaction.MatchString(s)
	}
	if i := slices.IndexFunc(statements, controls); i >= 0 {
		return fmt.Errorf("statement %d controls the transaction, which would part the file from its mark in the history: remove it", i+1)
	}
	return nil
}
