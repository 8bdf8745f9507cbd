package cli_test

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"caskeleton.dev/bootstrap/cli"
)

// A service has the kit's commands and its own.
func ExampleMain() {
	up := func(s *cli.Session) *cobra.Command {
		return &cobra.Command{Use: "up", Short: "Serve until told to stop", RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.Config()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "listening on http://%s\n", c.HTTP.Addr)
			return err
		}}
	}
	app := cli.App{Name: "orders", Short: "Take orders", Commands: []cli.Command{up}}
	code := cli.Main(context.Background(), app, cli.Process{
		Args: []string{"up"}, Environ: []string{"APP_HTTP_ADDR=127.0.0.1:9090"}, Stdout: os.Stdout, Stderr: os.Stderr,
	})
	fmt.Println("exit", code)
	// Output:
	// listening on http://127.0.0.1:9090
	// exit 0
}
