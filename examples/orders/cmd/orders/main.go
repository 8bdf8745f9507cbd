// Command orders is the reference service: it takes orders, each one once. "orders up" serves, "orders help" tells the rest.
package main

import (
	"context"
	"fmt"
	"os"

	"caskeleton.dev/bootstrap/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := cli.Signals(context.Background())
	defer stop()
	s, err := newService(os.Getenv)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		return cli.ExitFailed
	}
	app := cli.App{Name: s.Name, Short: "The reference service of ca-skeleton", Streams: s.Streams, Commands: cli.ServiceCommands(s)}
	return cli.Main(ctx, app, cli.Process{Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr})
}
