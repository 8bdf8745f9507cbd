package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

const kitSchema = "caskeleton"

// Stream is a sequence of migration files with a history of its own.
type Stream struct {
	Name   string // lower-case words and digits joined by "-", at most 40 characters: "orders". The kit's seven names are taken
	Schema string // the PostgreSQL schema of its tables, created if absent: "orders". Not the kit's
	FS     fs.FS  // its files, at the root

	kit bool
}

//go:embed core/*.sql idempotency/*.sql outbox-storage/*.sql outbox-polling/*.sql inbox/*.sql lock/*.sql
var files embed.FS

// Core returns the stream that all others stand on. Every [Migrator] has it.
func Core() Stream { return kitStream("core") }

// Idempotency returns the stream of package idempotency's table.
func Idempotency() Stream { return kitStream("idempotency") }

// OutboxStorage returns the stream of what package outbox records, whoever ships it.
func OutboxStorage() Stream { return kitStream("outbox-storage") }

// OutboxPolling returns the stream of what the relay of package outbox works with. An append needs it too.
func OutboxPolling() Stream { return kitStream("outbox-polling") }

// Inbox returns the stream of package inbox's table.
func Inbox() Stream { return kitStream("inbox") }

// Lock returns the stream of package lock's tables.
func Lock() Stream { return kitStream("lock") }

// All returns the kit's streams, in the order in which they run.
func All() []Stream {
	return []Stream{Core(), Idempotency(), OutboxStorage(), OutboxPolling(), Inbox(), Lock()}
}

// Select returns those of the kit's streams that are named, and core, in the order in which they run. Spaces around a name do not matter.
func Select(names ...string) ([]Stream, error) {
	on := map[string]bool{"core": true}
	var known []string
	for _, s := range All() {
		known = append(known, s.Name)
	}
	for _, name := range names {
		name = strings.TrimSpace(name)
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("migrations: the kit has no stream %q: take some of %s", name, strings.Join(known, ", "))
		}
		on[name] = true
	}
	return slices.DeleteFunc(All(), func(s Stream) bool { return !on[s.Name] }), nil
}

func kitStream(name string) Stream {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // a constant and valid name: cannot happen
	}
	return Stream{Name: name, Schema: kitSchema, FS: sub, kit: true}
}

var (
	reserved   = []string{"core", "idempotency", "outbox-storage", "outbox-polling", "inbox", "lock", "cache"}
	streamName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)
)

func (s Stream) validate() error {
	switch {
	case !streamName.MatchString(s.Name) || len(s.Name) > 40:
		return fmt.Errorf(`migrations: stream name %q must be lower-case words and digits joined by "-", at most 40 characters: choose one like "orders"`, s.Name)
	case !schemaName.MatchString(s.Schema) || strings.HasPrefix(s.Schema, "pg_"):
		return fmt.Errorf(`migrations: stream %s: schema %q must be a lower-case PostgreSQL name that does not begin with "pg_": choose one like "orders"`, s.Name, s.Schema)
	case s.FS == nil:
		return fmt.Errorf("migrations: stream %s: FS is nil: give it the folder of its files, as an embed.FS", s.Name)
	case !s.kit && slices.Contains(reserved, s.Name):
		return fmt.Errorf("migrations: stream name %q is one of the kit's: rename yours, or use migrations.All for the kit's own", s.Name)
	case !s.kit && s.Schema == kitSchema:
		return fmt.Errorf("migrations: stream %s: schema %s belongs to the kit: give the stream a schema of its own", s.Name, kitSchema)
	}
	return nil
}

// table is the stream's history. Names are checked by validate, so they need no quoting.
func (s Stream) table() string { return kitSchema + "." + s.tableName() }

func (s Stream) tableName() string { return "migrations_" + strings.ReplaceAll(s.Name, "-", "_") }
