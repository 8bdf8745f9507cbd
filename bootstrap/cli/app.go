package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/bootstrap/config"
)

// App is what one binary has of its own. Only Name is required.
type App struct {
	Name     string              // of the binary, as "orders"
	Short    string              // one line for the help
	Version  string              // what `version` prints; empty: the main module's, as the build recorded it
	Streams  []migrations.Stream // the service's own migrations, which `migrate` applies after the kit's
	Commands []Command           // the service's own
}

// Command makes one command for a run of the program. It takes its configuration from the session, inside RunE.
type Command func(*Session) *cobra.Command

// Process is what a program is given by the operating system.
type Process struct {
	Args           []string // without the program's name
	Environ        []string // NAME=value, as os.Environ returns them
	Stdout, Stderr io.Writer
	Now            func() time.Time // for relative times; nil: time.Now
}

// Session is one run of a program. Its flags are read once a command runs.
type Session struct {
	environ []string
	now     func() time.Time
	file    string
	format  choice
	times   choice
}

// Config loads the configuration: defaults, the file of --config, the environment. Its error is a [config.Problems].
func (s *Session) Config() (*config.Config, error) {
	return config.Load(config.Source{File: s.file, Environ: s.environ})
}

// Main runs the program and returns its exit code. It returns once the command has; cancelling ctx asks the command to end.
func Main(ctx context.Context, app App, p Process) int {
	s := &Session{environ: p.Environ, now: p.Now}
	if s.now == nil {
		s.now = time.Now
	}
	root := newRoot(app, s)
	root.SetArgs(append([]string{}, p.Args...)) // never nil, which cobra takes for os.Args
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.InitDefaultCompletionCmd() // it keeps the writer that is set by now
	closeGroups(root)
	started := watchStart(root)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !*started {
		err = usage(cmd, err)
	}
	return report(ctx, p.Stderr, err)
}

func newRoot(app App, s *Session) *cobra.Command {
	root := &cobra.Command{
		Use:                app.Name,
		Short:              app.Short,
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true,
	}
	s.format = choice{"text", []string{"text", "json", "jsonl"}}
	s.times = choice{"relative", []string{"relative", "iso"}}
	flags := root.PersistentFlags()
	flags.StringVar(&s.file, "config", "", "YAML file to read below the environment")
	flags.VarP(&s.format, "output", "o", "output as text, json or jsonl")
	flags.Var(&s.times, "time-format", "times in text as relative or iso")
	complete(root, "output", s.format)
	complete(root, "time-format", s.times)

	root.AddCommand(configCommand(s), idempotencyCommand(s), migrateCommand(s, app.Streams), versionCommand(s, app))
	for _, c := range app.Commands {
		root.AddCommand(c(s))
	}
	return root
}

func complete(root *cobra.Command, flag string, c choice) {
	if err := root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(c.allowed, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // a flag that newRoot has just made
	}
}
