package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/bootstrap/config"
)

func TestFileIsRefused(t *testing.T) {
	const (
		feature = "uses a feature of YAML that is not accepted here"
		plain   = "write the value itself, without &, *, ! or <<"
		indent  = "write each part on a line of its own, indented by two spaces"
		unknown = "is not a key that is known"
		gone    = "remove it; registry/env-keys.yaml lists the keys"
	)
	for _, tt := range []struct {
		name, text   string
		line         string
		key, path    string
		value        string
		problem, fix string
	}{
		{"unknown", "db:\n  max_conn: 5\n", ":2", "", "db.max_conn", "", unknown, "did you mean db.max_conns?"},
		{"unknown section", "database_pool:\n  x:\n    size: 5\n", ":3", "", "database_pool.x.size", "", unknown, gone},
		{"unknown and empty", "zebra:\n", ":1", "", "zebra", "", unknown, gone},
		{"unknown and empty map", "zebra: {}\n", ":1", "", "zebra", "", unknown, gone},
		{"below a value", "profile:\n  name: dev\n", ":2", "", "profile.name", "", unknown, gone},
		{"upper-case version", "idempotency:\n  keys:\n    V1: " + secretA + "\n", ":3", "", "idempotency.keys.V1", "", unknown, "did you mean idempotency.keys.v1?"},
		{"duplicate", "db:\n  max_conns: 5\n  idle_time: 1m\n  max_conns: 6\n", ":4", "APP_DB_MAX_CONNS", "db.max_conns", "", "is already set in line 2", "keep one of the two"},
		{"duplicate section", "db:\n  max_conns: 5\nhttp:\n  addr: :0\ndb:\n  idle_time: 1m\n", ":5", "", "db", "", "is already set in line 1", "keep one of the two"},
		{"section as value", "db: postgres://h/d\n", ":1", "", "db", "", "is a section, not a value", "write its keys below it, indented by two spaces"},
		{"dotted", "db.max_conns: 5\n", ":1", "APP_DB_MAX_CONNS", "db.max_conns", "", "has a dot in its name", indent},
		{"list", "db:\n  url: [a, b]\n", ":2", "DATABASE_URL", "db.url", "", "is a list", "write one value"},
		{"top-level list", "- a\n", ":1", "", "", "", "is a list", "write one value"},
		{"top-level value", "dev\n", ":1", "", "", "", "holds a single value", "write keys and values, as in profile: dev"},
		{"anchor", "profile: &p dev\n", ":1", "APP_PROFILE", "profile", "", feature, plain},
		{"tag", "profile: !!str dev\n", ":1", "APP_PROFILE", "profile", "", feature, plain},
		{"second document", "profile: dev\n---\nprofile: prod\n", ":3", "", "", "", "holds a second document", "keep one document, without a --- line in the middle"},
		{"octal-looking", "db:\n  max_conns: 0x10\n", ":2", "APP_DB_MAX_CONNS", "db.max_conns", "0x10", "is not a whole number", "write digits alone, as in 10"},
		{"bare duration", "db:\n  lock_timeout: 10\n", ":2", "APP_DB_LOCK_TIMEOUT", "db.lock_timeout", "10", "has no unit", "write 10s for seconds, 10ms for milliseconds or 10m for minutes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := writeFile(t, "app.yaml", tt.text)
			want := config.Problem{Key: tt.key, Path: tt.path, Where: file + tt.line, Value: tt.value, Problem: tt.problem, Fix: tt.fix}
			require.Empty(t, cmp.Diff(config.Problems{want}, problemsOf(t, config.Source{File: file})))
		})
	}
}

func TestFileIsNotYAML(t *testing.T) {
	file := writeFile(t, "app.yaml", "db:\n  url: [postgres://u:"+secretA+"@h/d\n")
	ps := problemsOf(t, config.Source{File: file, Environ: []string{"APP_DB_LOCK_TIMEOUT=10", "APP_PROFILE=prod"}})
	require.Len(t, ps, 2, "the environment is read all the same; what prod misses may be in the file")
	require.True(t, strings.HasPrefix(ps[0].Where, file+":"), ps[0].Where)
	require.True(t, strings.HasPrefix(ps[0].Problem, "is not valid YAML: "), ps[0].Problem)
	require.NotContains(t, ps.Error(), "canary")
	require.Equal(t, "APP_DB_LOCK_TIMEOUT", ps[1].Key)
}

func TestFileCannotBeRead(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	want := config.Problem{Where: missing, Problem: "cannot be read: no such file or directory", Fix: "give the path of a YAML file that this user can read"}
	require.Empty(t, cmp.Diff(config.Problems{want}, problemsOf(t, config.Source{File: missing})))

	large := writeFile(t, "large.yaml", "# "+strings.Repeat("x", 1<<20))
	require.Equal(t, "is over 1 MiB", problemsOf(t, config.Source{File: large})[0].Problem)
}

func TestFileForms(t *testing.T) {
	file := writeFile(t, "app.yaml", "# comment\n\"profile\": 'dev' # comment\ndb: {max_conns: 7, url: \"postgres://u:p#1@h/d\"}\nidempotency:\n  keys:\n    1: |-\n      "+secretA+"\n")
	c, err := config.Load(config.Source{File: file})
	require.NoError(t, err)
	require.EqualValues(t, 7, c.DB.MaxConns)
	require.Equal(t, "postgres://u:p#1@h/d", c.DB.URL.Reveal())
	require.Equal(t, secretA, c.Idempotency.Keys["1"].Reveal())
}
