package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const maxLines = 700

// fileRule is a rule that one file keeps or breaks. broken lists each breach with its place, its reason and the remedy.
type fileRule struct {
	name       string
	extensions []string
	broken     func(f source) []string
	bad        []source // each must be refused, since a rule that refuses nothing proves nothing
	good       []source
}

var fileRules = []fileRule{
	{
		name: "files stay short", extensions: []string{".go"},
		broken: func(f source) []string {
			if n := strings.Count(f.text, "\n"); n > maxLines && !f.generated() {
				return []string{fmt.Sprintf("%s has %d lines, and %d is the most: a reader should find one noun in a file; split it", f.path, n, maxLines)}
			}
			return nil
		},
		bad:  []source{{"a/a.go", "package a\n" + strings.Repeat("\n", maxLines)}},
		good: []source{{"a/a.go", "package a\n" + strings.Repeat("\n", maxLines-1)}, {"a/a_gen.go", generatedHead + strings.Repeat("\n", maxLines)}},
	},
	{
		name: "nothing skips", extensions: []string{".go"},
		broken: func(f source) []string {
			if !imports(f, "testing") {
				return nil
			}
			return calls(f, func(_, name string) string {
				if name == "Skip" || name == "Skipf" || name == "SkipNow" {
					return "a skipped test reads as a passed one; where a real component is missing, fail and say what to install"
				}
				return ""
			})
		},
		bad: []source{
			{"a/a_test.go", "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Skip(1) }\n"},
			{"a/a_test.go", "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Run(\"b\", func(u *testing.T) { u.SkipNow() }) }\n"},
			{"a/atest/a.go", "package atest\n\nimport \"testing\"\n\nfunc Run(tb testing.TB) { tb.Skipf(\"%d\", 1) }\n"},
		},
		good: []source{{"a/a.go", "package a\n\nfunc A(s Scanner) { s.Skip(1) }\n"}},
	},
	{
		name: "nothing sleeps", extensions: []string{".go"},
		broken: func(f source) []string {
			return calls(f, func(on, name string) string {
				if on == "time" && name == "Sleep" {
					return "a sleep is too long on a fast machine and too short on a slow one; wait on a channel, a context or require.Eventually"
				}
				return ""
			})
		},
		bad:  []source{{"a/a_test.go", "package a\n\nfunc wait() { time.Sleep(time.Second) }\n"}},
		good: []source{{"a/a.go", "package a\n\n// time.Sleep(1) is not called\nfunc wait() { clock.Sleep(1) }\n"}},
	},
	{
		name: "session-level locks stay in migrations", extensions: []string{".go", ".sql"},
		broken: sessionLocks,
		bad: []source{
			{"a/a.go", "package a\n\nconst q = `SELECT pg_advisory_lock($1)`\n"},
			{"a/a.sql", "SELECT PG_TRY_ADVISORY_LOCK(1);\n"},
			{"a/a.sql", "SELECT pg_advisory_unlock_shared(1);\n"},
			{"a/a.go", "package a\n\nconst q = \"SELECT pg_advisory_unlock_all()\"\n"},
			{migrations + "lock.go", "package migrations\n\nconst q = `SELECT pg_advisory_lock($1)`\n"},
		},
		good: []source{
			{"a/a.go", "package a\n\n// pg_advisory_lock is not used.\nconst q = `SELECT pg_advisory_xact_lock($1)`\n"},
			{migrations + "lock.go", "package migrations\n\nconst q = `SELECT pg_try_advisory_lock($1)`\n"},
			{"a/a_test.go", "package a\n\nconst q = `SELECT pg_advisory_lock($1)`\n"},
		},
	},
	{
		name: "advisory locks stay with PostgreSQL's adapter", extensions: []string{".go", ".sql"},
		broken: advisoryLocks,
		bad: []source{
			{"a/a.go", "package a\n\nconst q = `SELECT pg_advisory_xact_lock($1)`\n"},
			{"a/a.go", "package a\n\nconst q = \"select pg_catalog.pg_try_advisory_xact_lock_shared(1)\"\n"},
			{"a/a.sql", "SELECT pg_try_advisory_xact_lock(1);\n"},
			{"adapter/redis/a.go", "package redis\n\nconst q = `SELECT PG_ADVISORY_XACT_LOCK(1)`\n"},
		},
		good: []source{
			{"a/a.go", "package a\n\n// pg_advisory_xact_lock is not used.\nconst q = `SELECT pg_advisories`\n"},
			{postgresTree + "pglock/a.go", "package pglock\n\nconst q = `SELECT pg_advisory_xact_lock($1)`\n"},
			{migrations + "lock/a.sql", "SELECT pg_advisory_xact_lock(1);\n"},
			{"bench/a.go", "package main\n\nconst q = `SELECT pg_advisory_xact_lock(1)`\n"},
			{"a/a_test.go", "package a\n\nconst q = `SELECT pg_advisory_xact_lock($1)`\n"},
		},
	},
	{
		name: "no left-over marks", extensions: []string{".go", ".sql", ".md", ".yaml", ".yml", "Makefile"},
		broken: func(f source) []string {
			if m := leftover.FindString(f.text); m != "" {
				return []string{fmt.Sprintf("%s holds %q: nobody reads such a mark again; do it now, or open an issue", f.path, m)}
			}
			return nil
		},
		bad:  []source{{"a.md", "TO" + "DO: later\n"}, {"a.sql", "-- FIX" + "ME\n"}},
		good: []source{{"a.md", "todo lists\n"}},
	},
	{
		name: "generated files are named so", extensions: []string{".go"},
		broken: func(f source) []string {
			if strings.HasSuffix(path.Base(f.path), "_gen.go") != f.generated() {
				return []string{f.path + ": a generated file is named *_gen.go and says `Code generated ... DO NOT EDIT.`, no other file does either; or people edit the wrong one"}
			}
			return nil
		},
		bad:  []source{{"a/a_gen.go", "package a\n"}, {"a/a.go", generatedHead}},
		good: []source{{"a/a_gen.go", generatedHead}, {"a/a.go", "package a\n"}},
	},
	loggedErrors,
}

const (
	postgresTree  = "adapter/postgres/"
	migrations    = postgresTree + "migrations/"
	generatedHead = "// Code generated by x. DO NOT EDIT.\n\npackage a\n"
)

var (
	sessionLock = regexp.MustCompile(`(?i)\bpg_(try_)?advisory_(un)?lock(_all|_shared)?\b`)
	blocking    = regexp.MustCompile(`(?i)\bpg_advisory_lock(_shared)?\b`)
	advisory    = regexp.MustCompile(`(?i)\bpg_(try_)?advisory_`)
	leftover    = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
)

// sessionLocks searches Go in its string literals, since comments may speak of the locks. Tests may play the other side, and pgtest serves tests: it
// locks around CREATE DATABASE, which refuses a transaction, on a connection of its own.
func sessionLocks(f source) []string {
	if f.isTest() || strings.HasPrefix(f.path, "adapter/postgres/pgtest/") {
		return nil
	}
	check := func(place, sql string) []string {
		switch {
		case sessionLock.MatchString(sql) && !strings.HasPrefix(f.path, migrations):
			return []string{place + ": a session-level lock stays behind when a pool or a pooler hands the connection on; take pg_advisory_xact_lock or a row lock, only " +
				migrations + " may hold one"}
		case blocking.MatchString(sql):
			return []string{place + ": waiting in pg_advisory_lock blocks CREATE INDEX CONCURRENTLY for ever; poll pg_try_advisory_lock"}
		}
		return nil
	}
	return inSQL(f, check)
}

// advisoryLocks: all advisory locks of a database share one space of numbers, which only those who see all of them can keep apart. Tests may play the
// other side, and the bench measures it.
func advisoryLocks(f source) []string {
	if f.isTest() || strings.HasPrefix(f.path, postgresTree) || strings.HasPrefix(f.path, "bench/") {
		return nil
	}
	return inSQL(f, func(place, sql string) []string {
		if !advisory.MatchString(sql) {
			return nil
		}
		return []string{place + ": the numbers of advisory locks are shared by all of a database, so only " + postgresTree + " hands them out; take lock.InTx or a lock.Locker"}
	})
}

// inSQL checks a file of SQL, or each literal of Go.
func inSQL(f source, check func(place, sql string) []string) []string {
	if strings.HasSuffix(f.path, ".sql") {
		return check(f.path, f.text)
	}
	var all []string
	literals(f, func(at, text string) { all = append(all, check(at, text)...) })
	return all
}

// calls asks about each call of a method or a package's function, with what it is called on ("t" in t.Skip), and returns the answers that are not empty.
func calls(f source, ask func(on, name string) string) []string {
	var all []string
	ast.Inspect(f.parse(parser.SkipObjectResolution), func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		on := ""
		if id, ok := sel.X.(*ast.Ident); ok {
			on = id.Name
		}
		if why := ask(on, sel.Sel.Name); why != "" {
			all = append(all, f.position(call.Pos())+": "+why)
		}
		return true
	})
	return all
}

// literals visits the literals of a Go file, as they are written, with their places.
func literals(f source, visit func(at, text string)) {
	ast.Inspect(f.parse(parser.SkipObjectResolution), func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok {
			visit(f.position(lit.Pos()), lit.Value)
		}
		return true
	})
}

func imports(f source, pkg string) bool {
	return slices.ContainsFunc(f.parse(parser.ImportsOnly).Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"`+pkg+`"` })
}

func TestFilesKeepTheRules(t *testing.T) {
	for _, r := range fileRules {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range tree(t, r.extensions...) {
				for _, breach := range r.broken(f) {
					t.Error(breach)
				}
			}
		})
	}
}

func TestTheRulesCanFail(t *testing.T) {
	for _, r := range fileRules {
		t.Run(r.name, func(t *testing.T) {
			require.NotEmpty(t, r.bad)
			for _, f := range r.bad {
				require.NotEmpty(t, r.broken(f), "%s\n%s", f.path, f.text)
			}
			for _, f := range r.good {
				require.Empty(t, r.broken(f), "%s\n%s", f.path, f.text)
			}
		})
	}
}
