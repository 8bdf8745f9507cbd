// Command testsum runs `go test -json` in each of the given directories, prints a line for each package and the output of what failed, and ends with
// the counts over all of them, alone on a line: "N passed, N failed". Subtests count. A skip, a package that does not build, and one that fails
// outside its tests count as failed. It exits with 1 on any failure.
//
//	testsum . examples/orders -- -race ./...
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if !run(ctx, os.Stdout, os.Stderr, os.Args[1:]) {
		stop()
		os.Exit(1)
	}
}

// run reports whether there were tests and all of them passed.
func run(ctx context.Context, out, errOut io.Writer, args []string) bool {
	i := slices.Index(args, "--")
	if i < 1 {
		fmt.Fprintln(errOut, "usage: testsum DIRECTORY... -- GO-TEST-ARGUMENT...")
		return false
	}
	s := newSummary(out)
	ok := true
	for _, dir := range args[:i] {
		fmt.Fprintln(out, "==", filepath.ToSlash(dir))
		if err := test(ctx, s, errOut, dir, args[i+1:]); err != nil {
			fmt.Fprintf(errOut, "go test in %s: %v\n", dir, err)
			ok = false
		}
	}
	passed, failed := s.counts()
	if passed+failed == 0 {
		fmt.Fprintln(errOut, "no test ran")
		ok = false
	}
	fmt.Fprintf(out, "%d passed, %d failed\n", passed, failed)
	return ok && failed == 0
}

func test(ctx context.Context, s *summary, errOut io.Writer, dir string, args []string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...) //nolint:gosec // the caller's own arguments
	cmd.Dir, cmd.Stderr = dir, errOut
	// Interrupted, go test ends its tests itself; killed, it would leave them behind.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := s.read(stdout)
	if err := cmd.Wait(); err != nil {
		return err
	}
	return readErr
}
