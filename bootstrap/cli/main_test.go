package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/bootstrap/cli"
)

// TestMain lets the test binary be the program: a signal can only be tested on a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("CLI_TEST_CHILD") != "" {
		os.Exit(child())
	}
	os.Exit(m.Run())
}

// child says "ready", waits for the first signal, says so, and goes on until a second signal or the end of its stdin.
func child() int {
	ctx, stop := cli.Signals(context.Background())
	defer stop()
	wait := func(*cli.Session) *cobra.Command {
		return &cobra.Command{Use: "wait", RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), "ready")
			<-cmd.Context().Done()
			fmt.Fprintln(cmd.OutOrStdout(), context.Cause(cmd.Context()))
			_, err := io.Copy(io.Discard, os.Stdin)
			return errors.Join(cmd.Context().Err(), err)
		}}
	}
	return cli.Main(ctx, cli.App{Name: "kit", Commands: []cli.Command{wait}}, cli.Process{Args: []string{"wait"}, Stdout: os.Stdout, Stderr: os.Stderr})
}

func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second syscall.Signal
		said          string
		code          int
	}{
		{"interrupt, then end of work", syscall.SIGINT, 0, "received interrupt", cli.ExitRefused},
		{"terminate, then end of work", syscall.SIGTERM, 0, "received terminated", cli.ExitRefused},
		{"interrupt twice", syscall.SIGINT, syscall.SIGINT, "received interrupt", 130},
		{"interrupt, then terminate", syscall.SIGINT, syscall.SIGTERM, "received interrupt", 143},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(os.Environ(), "CLI_TEST_CHILD=1")
			stdin, err := cmd.StdinPipe()
			require.NoError(t, err)
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(stdout)
			require.True(t, lines.Scan())
			require.Equal(t, "ready", lines.Text())
			require.NoError(t, cmd.Process.Signal(tt.first))
			require.True(t, lines.Scan())
			require.Equal(t, tt.said, lines.Text())
			if tt.second != 0 {
				require.NoError(t, cmd.Process.Signal(tt.second)) // stdin stays open: only the signal ends it
			} else {
				require.NoError(t, stdin.Close())
			}
			require.False(t, lines.Scan())
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Wait(), &exit)
			require.Equal(t, tt.code, exit.ExitCode())
		})
	}
}

func TestSignalsStops(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, stop := cli.Signals(t.Context())
	require.NoError(t, ctx.Err())
	stop()
	require.ErrorIs(t, ctx.Err(), context.Canceled)
}

func TestCancelledIsRefused(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := play(ctx, run{environ: []string{"DATABASE_URL=" + pgtest.DSN(t)}, command: "kit migrate up"})
	require.Equal(t, "0 applied\n! error: context canceled\n! hint: it was cancelled: look at what it did before you run it again\n[exit 2]\n", got)
}

// A command that ends well although it was told to stop, as a server does, has done its work.
func TestStoppedIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, "[exit 0]\n", play(ctx, run{command: "kit fail nothing"}))
}

func TestVersion(t *testing.T) {
	require.Equal(t, "kit v1.2.3 ("+runtime.Version()+")\n[exit 0]\n", play(t.Context(), run{command: "kit version"}))
	out, exit, _ := strings.Cut(play(t.Context(), run{command: "kit version -o jsonl"}), "\n")
	require.Equal(t, "[exit 0]\n", exit)
	var b map[string]string
	require.NoError(t, json.Unmarshal([]byte(out), &b))
	require.Equal(t, "kit", b["name"])
	require.Equal(t, "v1.2.3", b["version"])
	require.Equal(t, runtime.Version(), b["go"])
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := play(t.Context(), run{command: "kit completion " + shell})
		require.Contains(t, got, "kit", shell)
		require.Contains(t, got, "[exit 0]\n", shell)
	}
}

func TestTheKitsStreamsNeedNoNaming(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := cli.Main(t.Context(), cli.App{Name: "kit"}, cli.Process{
		Args: []string{"migrate", "status", "-o", "jsonl"}, Environ: []string{"DATABASE_URL=" + pgtest.DSN(t)}, Stdout: &stdout, Stderr: &stderr,
	})
	require.Equal(t, cli.ExitDone, code, stderr.String())
	for _, s := range migrations.All() {
		require.Contains(t, stdout.String(), `{"stream":"`+s.Name+`",`)
	}
}

// os.Args holds the flags of the test binary, which cobra must not see.
func TestNilArgsAreNoArgs(t *testing.T) {
	var stdout bytes.Buffer
	require.Equal(t, cli.ExitDone, cli.Main(t.Context(), cli.App{Name: "kit"}, cli.Process{Stdout: &stdout, Stderr: io.Discard}))
	require.Contains(t, stdout.String(), "Usage:")
}

func TestOutputFailureIsReported(t *testing.T) {
	for _, format := range []string{"text", "json", "jsonl"} {
		var stderr bytes.Buffer
		code := cli.Main(t.Context(), cli.App{Name: "kit"}, cli.Process{Args: []string{"config", "print", "-o", format}, Stdout: brokenPipe{}, Stderr: &stderr})
		require.Equal(t, cli.ExitFailed, code, format)
		require.Equal(t, "error: broken pipe\n", stderr.String(), format)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestGrantsAreApplied to a role that can then ask and not change.
func TestGrantsAreApplied(t *testing.T) {
	dsn := pgtest.DSN(t)
	role := "cli_" + strings.ToLower(rand.Text())
	conn := pgtest.Connect(t, dsn)
	_, err := conn.Exec(t.Context(), `create role `+role+` login password 'secret'`)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()), `drop owned by `+role+`; drop role `+role)
		require.NoError(t, err)
	})
	kit := func(url, command string) string {
		return play(t.Context(), run{environ: []string{"DATABASE_URL=" + url}, command: "kit migrate " + command})
	}
	require.Contains(t, kit(dsn, "up"), "[exit 0]")
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	u.User = url.UserPassword(role, "secret")
	require.Contains(t, kit(u.String(), "verify"), "[exit 1]")
	require.Contains(t, kit(dsn, "grants --role "+role), "grant usage on schema caskeleton")
	require.Contains(t, kit(u.String(), "verify"), "[exit 1]", "it was only printed")
	require.Contains(t, kit(dsn, "grants --apply --role "+role), "[exit 0]")
	require.Contains(t, kit(u.String(), "verify"), "[exit 0]")
	require.Contains(t, kit(u.String(), "grants --apply --role "+role), "is the owner")
}
