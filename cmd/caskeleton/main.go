// Command caskeleton is the operator's tool of the kit. Its commands are those of package cli. It knows the kit's migrations alone: a
// service's own binary has these commands too, and is the one to migrate with.
package main

import (
	"context"
	"os"

	"caskeleton.dev/bootstrap/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := cli.Signals(context.Background())
	defer stop()
	app := cli.App{Name: "caskeleton", Short: "Operate the data layer of a service"}
	return cli.Main(ctx, app, cli.Process{Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr})
}
