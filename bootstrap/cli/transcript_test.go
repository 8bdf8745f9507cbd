package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/bootstrap/cli"
	"caskeleton.dev/fault"
)

// shop is a service's own stream.
var shop = migrations.Stream{Name: "shop", Schema: "shop", FS: fstest.MapFS{
	"00001_item.sql": {Data: []byte("-- +goose Up\ncreate table shop.item (id bigint primary key);\n")},
}}

// Each file of testdata is a list of runs: "env" lines, the command, what it prints ("! " marks stderr) and its exit code. {name} in an
// "env" line is the DSN of a database that the runs of one file share, {migrated} of one that has the idempotency records, and "sql name" lines run in it before the first of them. They are written by
// hand; <time>, <age>, <duration>, <database> and <checksum> stand for what differs from run to run.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.Len(t, files, 5)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		dbs := databases{}
		for _, r := range runsOf(t, string(text), dbs) {
			t.Run(filepath.Base(file)+" "+r.command, func(t *testing.T) {
				got := masked(play(t.Context(), r))
				require.Empty(t, cmp.Diff(r.want, got))
				require.NotContains(t, got, "canary")
				dbs.notIn(t, got)
				require.NotContains(t, got, "\x1b", "no colours")
			})
		}
	}
}

// databases are DSNs by name.
type databases map[string]string

func (dbs databases) dsn(t *testing.T, name string) string {
	t.Helper()
	if dbs[name] == "" {
		if name == "migrated" {
			dbs[name] = migrationstest.DSN(t, migrations.Idempotency())
		} else {
			dbs[name] = pgtest.DSN(t)
		}
	}
	return dbs[name]
}

func (dbs databases) notIn(t *testing.T, output string) {
	t.Helper()
	for _, dsn := range dbs {
		u, err := url.Parse(dsn)
		require.NoError(t, err)
		password, _ := u.User.Password()
		for _, part := range []string{dsn, u.Path[1:], u.Host, password} {
			require.NotContains(t, output, part)
		}
	}
}

var (
	database = regexp.MustCompile(`\{([a-z]+)\}`)
	masks    = []struct {
		pattern *regexp.Regexp
		name    string
	}{
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`), "<time>"},
		{regexp.MustCompile(`\d+[smhd] ago`), "<age>"},
		{regexp.MustCompile(`pgtest_db_\w+`), "<database>"},
		{regexp.MustCompile(`[0-9a-f]{64}`), "<checksum>"},
		{regexp.MustCompile(`duration=\S+`), "duration=<duration>"},
	}
)

func masked(s string) string {
	for _, m := range masks {
		s = m.pattern.ReplaceAllString(s, m.name)
	}
	return s
}

type run struct {
	environ []string
	command string
	want    string
}

func runsOf(t *testing.T, text string, dbs databases) []run {
	t.Helper()
	var runs []run
	var r run
	for line := range strings.Lines(text) {
		env, isEnv := strings.CutPrefix(line, "env ")
		command, isCommand := strings.CutPrefix(line, "$ kit")
		statement, isSQL := strings.CutPrefix(line, "sql ")
		switch {
		case r.command == "" && isEnv:
			r.environ = append(r.environ, database.ReplaceAllStringFunc(strings.TrimSuffix(env, "\n"), func(name string) string {
				return dbs.dsn(t, strings.Trim(name, "{}"))
			}))
		case r.command == "" && isSQL:
			name, statement, _ := strings.Cut(statement, " ")
			_, err := pgtest.Connect(t, dbs.dsn(t, name)).Exec(t.Context(), statement)
			require.NoError(t, err)
		case r.command == "" && isCommand:
			r.command = "kit" + strings.TrimSuffix(command, "\n")
		case r.command == "":
			require.True(t, line == "\n" || strings.HasPrefix(line, "#"), "a line of no run: %q", line)
		default:
			r.want += line
			if strings.HasPrefix(line, "[exit ") {
				runs = append(runs, r)
				r = run{}
			}
		}
	}
	require.Empty(t, r.command, "the last run has no [exit N]")
	return runs
}

func play(ctx context.Context, r run) string {
	var stdout, stderr bytes.Buffer
	app := cli.App{Name: "kit", Short: "Operate the kit", Version: "v1.2.3", Streams: []migrations.Stream{shop}, Commands: []cli.Command{failCommand}}
	code := cli.Main(ctx, app, cli.Process{
		Args: strings.Fields(r.command)[1:], Environ: r.environ, Stdout: &stdout, Stderr: &stderr,
	})
	var b strings.Builder
	b.WriteString(stdout.String())
	for line := range strings.Lines(stderr.String()) {
		b.WriteString("! " + line)
	}
	fmt.Fprintf(&b, "[exit %d]\n", code)
	return b.String()
}

func failCommand(*cli.Session) *cobra.Command {
	group := &cobra.Command{Use: "fail", Short: "End as told"}
	for name, err := range map[string]error{
		"nothing":         nil,
		"plain":           errors.New("it broke"),
		"refused":         fmt.Errorf("%w", cli.Refused("12 rows would change", "say --yes")),
		"unauthenticated": fault.New(fault.NewCode(fault.Spec{Name: "WHO", Category: fault.CategoryUnauthenticated, Status: 401, Client: "c", Hint: "Sign in."}), "fail.Verb", errors.New("who are you")),
		"forbidden":       fmt.Errorf("wrapped: %w", fault.NewCode(fault.Spec{Name: "NO", Category: fault.CategoryForbidden, Status: 403, Client: "c", Hint: "Ask for the permission."})),
		"denied":          fault.New(fault.DBAccessDenied, "postgres.Open", nil),
		"unavailable":     fault.New(fault.DBUnavailable, "postgres.Open", nil),
	} {
		group.AddCommand(&cobra.Command{Use: name, RunE: func(*cobra.Command, []string) error { return err }})
	}
	required := &cobra.Command{Use: "required", RunE: func(*cobra.Command, []string) error { return nil }}
	required.Flags().String("reason", "", "why")
	if err := required.MarkFlagRequired("reason"); err != nil {
		panic(err)
	}
	group.AddCommand(required)
	return group
}
