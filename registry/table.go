package registry

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Table is one entry of tables.yaml: a table of the kit's schema.
type Table struct {
	Name   string
	Stream string              // that makes it
	Owner  string              // package, from the repository's root
	Access map[string][]string // verbs by package: what its SQL does
	Grants []string            // to the runtime role: "select", or "update (column)"
}

var (
	tableName    = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	tableStreams = []string{"core", "idempotency", "outbox-storage", "outbox-polling", "inbox", "lock", "cache"}
	tableVerbs   = []string{"select", "insert", "update", "delete", "ddl"}
	tableGrant   = regexp.MustCompile(`^(select|insert|update|delete)( \([a-z][a-z0-9_]*(, [a-z][a-z0-9_]*)*\))?$`)
)

// tablesFile is where migrations finds what the runtime role may do.
const tablesFile = "adapter/postgres/migrations/tables_gen.go"

func checkTables(tables []Table) []error {
	var p problems
	for i, t := range tables {
		entry := t.Name
		if !tableName.MatchString(t.Name) {
			entry = fmt.Sprintf("entry %d", i+1)
			p.addf(entry, "name %q is not a lower-case name without a schema", t.Name)
		}
		p.once(entry, "name", t.Name)
		if !slices.Contains(tableStreams, t.Stream) {
			p.addf(entry, "stream %q is not one of %s", t.Stream, strings.Join(tableStreams, ", "))
		}
		if len(t.Access[t.Owner]) == 0 {
			p.addf(entry, "owner %q has no access; name the package that works with the table, and what it does", t.Owner)
		}
		for pkg, verbs := range t.Access {
			for _, v := range verbs {
				if !slices.Contains(tableVerbs, v) {
					p.addf(entry, "access of %s: %q is not one of %s", pkg, v, strings.Join(tableVerbs, ", "))
				}
			}
		}
		for _, g := range t.Grants {
			if !tableGrant.MatchString(g) {
				p.addf(entry, "grant %q is not select, insert, update or delete, which columns in parentheses may follow", g)
			}
		}
	}
	return p.list
}

func tablesGo(tables []Table) []byte {
	var b bytes.Buffer
	b.WriteString("// Code generated from registry/tables.yaml by make generate. DO NOT EDIT.\n\npackage migrations\n\n" +
		"// tables is every table of the kit and what the runtime role may do with it; nothing changes it.\nvar tables = []table{\n")
	for _, t := range tables {
		fmt.Fprintf(&b, "{name: %q, stream: %q, grants: %#v},\n", t.Name, t.Stream, t.Grants)
	}
	b.WriteString("}\n")
	return b.Bytes()
}
