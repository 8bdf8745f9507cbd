package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/bootstrap/cli"
	"caskeleton.dev/fault"
)

var now = time.Date(2026, 2, 28, 12, 0, 30, 0, time.UTC)

// Each file of testdata is a list of runs: "env" lines, the command, what it prints ("! " marks stderr) and its exit code. They are
// written by hand.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, r := range runsOf(t, string(text)) {
			t.Run(filepath.Base(file)+" "+r.command, func(t *testing.T) {
				got := play(t.Context(), r)
				require.Empty(t, cmp.Diff(r.want, got))
				require.NotContains(t, got, "canary")
				require.NotContains(t, got, "\x1b", "no colours")
			})
		}
	}
}

type run struct {
	environ []string
	command string
	want    string
}

func runsOf(t *testing.T, text string) []run {
	t.Helper()
	var runs []run
	var r run
	for line := range strings.Lines(text) {
		env, isEnv := strings.CutPrefix(line, "env ")
		command, isCommand := strings.CutPrefix(line, "$ kit")
		switch {
		case r.command == "" && isEnv:
			r.environ = append(r.environ, strings.TrimSuffix(env, "\n"))
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
	app := cli.App{Name: "kit", Short: "Operate the kit", Version: "v1.2.3", Migrator: openFake, Commands: []cli.Command{failCommand}}
	code := cli.Main(ctx, app, cli.Process{
		Args: strings.Fields(r.command)[1:], Environ: r.environ, Stdout: &stdout, Stderr: &stderr, Now: func() time.Time { return now },
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
