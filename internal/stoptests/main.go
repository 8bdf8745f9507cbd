// Command stoptests ends the PostgreSQL servers that this user's tests left running for the next ones.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"caskeleton.dev/adapter/postgres/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := embedded.StopShared(ctx)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
