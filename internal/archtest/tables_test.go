package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/registry"
)

// asOwner are packages that set up and measure whole databases, as the owner of all tables; no service has them.
var asOwner = []string{"bench"}

var (
	tableUse = regexp.MustCompile(`(?i)(?:\b(partition of|[a-z]+)\s+(?:only\s+)?|(,)\s*)caskeleton\.([a-z0-9_]*)(\()?`)
	madeOf   = regexp.MustCompile(`(?i)\b(from|join|into|update|using|table)\s+caskeleton\.$`)
	verbOf   = map[string]string{
		"from": "select", "join": "select", "using": "select", "into": "insert", "update": "update", "delete": "delete",
		"table": "ddl", "truncate": "ddl", "exists": "ddl", "like": "ddl", "partition of": "ddl", "on": "ddl", "vacuum": "ddl", "analyze": "ddl",
	}
	deletes  = regexp.MustCompile(`(?i)\bdelete\s+from\s+(?:only\s+)?$`)
	conflict = regexp.MustCompile(`(?i)\bdo\s+update\b`)
	schema   = regexp.MustCompile(`caskeleton\.`)
)

// use is what one piece of SQL does with a table.
type use struct{ table, verb string }

// usesOf reads the accesses in one string. A string that names tables and is no SQL has none; one that hides a name is reported.
func usesOf(text string) (uses []use, hidden bool) {
	for _, m := range tableUse.FindAllStringSubmatchIndex(text, -1) {
		if m[8] >= 0 && text[m[3]-1] != 'o' { // a function is called; INSERT INTO may have its columns close by
			continue
		}
		table := text[m[6]:m[7]]
		if m[2] < 0 {
			if len(uses) > 0 { // a list goes on
				uses = append(uses, use{table, uses[len(uses)-1].verb})
			}
			continue
		}
		word := strings.ToLower(text[m[2]:m[3]])
		verb := verbOf[word]
		if verb == "" {
			continue
		}
		if table == "" || strings.HasSuffix(table, "_") || strings.HasPrefix(text[m[7]:], "%") {
			hidden = true
			continue
		}
		nameAt := m[6] - len("caskeleton.")
		if deletes.MatchString(text[:nameAt]) {
			verb = "delete"
		}
		uses = append(uses, use{table, verb})
		if verb == "insert" {
			rest := text[m[7]:]
			if next := strings.Index(strings.ToLower(rest), "insert into"); next >= 0 {
				rest = rest[:next]
			}
			if conflict.MatchString(rest) {
				uses = append(uses, use{table, "update"})
			}
		}
	}
	return uses, hidden
}

// compareTables lists where the SQL of files and the registered tables differ.
func compareTables(files []source, registered []registry.Table) []string {
	byName := map[string]registry.Table{}
	for _, t := range registered {
		byName[t.Name] = t
	}
	used := map[string]bool{} // table, package and verb
	var all []string
	for _, f := range files {
		if slices.Contains(asOwner, strings.SplitN(f.dir(), "/", 2)[0]) {
			continue
		}
		ast.Inspect(f.parse(parser.SkipObjectResolution), func(n ast.Node) bool {
			e, ok := n.(*ast.BasicLit)
			if !ok {
				return true
			}
			text, ok := literal(e)
			if !ok || !schema.MatchString(text) {
				return true
			}
			at := f.position(e.Pos())
			uses, hidden := usesOf(text)
			if hidden || madeOf.MatchString(text) {
				all = append(all, at+": SQL puts the name of a table together, so that nobody can tell what it touches; write the name out")
			}
			for _, u := range uses {
				t, known := byName[u.table]
				used[u.table+" "+f.dir()+" "+u.verb] = true
				switch {
				case !known:
					all = append(all, fmt.Sprintf("%s: table %q is not registered, so that nobody owns it and no role is granted it; add it to registry/tables.yaml", at, u.table))
				case !slices.Contains(t.Access[f.dir()], u.verb):
					all = append(all, fmt.Sprintf("%s: %s may not %s caskeleton.%s, which is %s's; ask that package, or say so in registry/tables.yaml", at, f.dir(), u.verb, u.table, t.Owner))
				}
			}
			return true
		})
	}
	return append(all, staleTables(registered, used)...)
}

func staleTables(registered []registry.Table, used map[string]bool) []string {
	var all []string
	for _, t := range registered {
		granted := map[string]bool{}
		for _, pkg := range slices.Sorted(maps.Keys(t.Access)) {
			for _, verb := range t.Access[pkg] {
				granted[verb] = true
				if !used[t.Name+" "+pkg+" "+verb] {
					all = append(all, fmt.Sprintf("registry/tables.yaml lets %s %s %s, which it does not do; a right that nobody needs hides one that nobody should have", pkg, verb, t.Name))
				}
			}
		}
		for _, g := range t.Grants {
			if verb, _, limited := strings.Cut(g, " "); !granted[verb] && !limited {
				all = append(all, fmt.Sprintf("registry/tables.yaml grants %s on %s, which no package does; remove it", verb, t.Name))
			}
		}
	}
	return all
}

func TestEachTableIsTouchedByWhoMay(t *testing.T) {
	r, err := registry.Load(os.DirFS(filepath.Join("..", "..", "registry")))
	require.NoError(t, err)
	var files []source
	for _, f := range tree(t, ".go") {
		if !f.isTest() && !f.generated() {
			files = append(files, f)
		}
	}
	for _, breach := range compareTables(files, r.Tables) {
		t.Error(breach)
	}
}

func TestCompareTables(t *testing.T) {
	a := registry.Table{Name: "a", Owner: "p", Access: map[string][]string{"p": {"select", "insert"}}, Grants: []string{"select", "insert"}}
	const good = "select 1 from caskeleton.a; insert into caskeleton.a (n) values (1)"
	code := func(dir, sql string) []source {
		return []source{
			{"p/p.go", "package p\n\nconst own = `" + good + "`\n"},
			{dir + "/x.go", "package x\n\nvar x = `" + sql + "`\n"},
		}
	}
	for sql, want := range map[string]string{
		"select 1":                                 "",
		"caskeleton.a is full; look at it":         "",
		"'caskeleton.a'::regclass":                 "",
		"select caskeleton.f(1)":                   "",
		"select n from caskeleton.a":               `x/x.go:3: x may not select caskeleton.a, which is p's`,
		"select n from b join caskeleton.a x":      "x may not select",
		"select n from b, caskeleton.a":            "",
		"insert into caskeleton.a values (1)":      "x may not insert",
		"insert into caskeleton.a(n) values (1)":   "x may not insert",
		"update caskeleton.a set n = 1":            "x may not update",
		"UPDATE ONLY caskeleton.a SET n = 1":       "x may not update",
		"delete from caskeleton.a":                 "x may not delete",
		"delete from b using caskeleton.a":         "x may not select",
		"truncate caskeleton.a":                    "x may not ddl",
		"create table b partition of caskeleton.a": "x may not ddl",
		"the rows of caskeleton.a are many":        "",
		"lock table caskeleton.a in share mode":    "x may not ddl",
		"alter table if exists caskeleton.a add n": "x may not ddl",
		"create index i on caskeleton.a (n)":       "x may not ddl",
		"select n from caskeleton.other":           `table "other" is not registered`,
		"select n from caskeleton.":                "puts the name of a table together",
		"select n from caskeleton.a_%s":            "puts the name of a table together",
	} {
		breaches := compareTables(code("x", sql), []registry.Table{a})
		if want == "" {
			require.Empty(t, breaches, sql)
			continue
		}
		require.Len(t, breaches, 1, sql)
		require.Contains(t, breaches[0], want)
	}
	require.Contains(t, strings.Join(compareTables(code("p", "insert into caskeleton.a (n) values (1) on conflict (n) do update set n = 2"), []registry.Table{a}), "\n"), "p may not update")
	require.Contains(t, strings.Join(compareTables(code("p", "truncate x, caskeleton.a; truncate caskeleton.a, caskeleton.b"), []registry.Table{a}), "\n"), `table "b" is not registered`)
	require.Empty(t, compareTables(code("bench/sub", "drop table caskeleton.a"), []registry.Table{a}))

	a.Access = map[string][]string{"p": {"select", "insert", "delete"}, "q": {"select"}}
	a.Grants = []string{"select", "update", "update (n)"}
	stale := strings.Join(compareTables(code("p", "select 1"), []registry.Table{a}), "\n")
	require.Contains(t, stale, "lets p delete a, which it does not do")
	require.Contains(t, stale, "lets q select a, which it does not do")
	require.Contains(t, stale, "grants update on a, which no package does")
	require.Equal(t, 3, strings.Count(stale, "\n")+1)
}
