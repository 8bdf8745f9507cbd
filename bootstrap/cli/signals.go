package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a context that the first SIGINT or SIGTERM cancels, with the signal as its cause. A second one ends the process
// at once, with 128 and the signal's number: 130 or 143. stop ends the watch, and gives the signals back to the runtime.
func Signals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		watch(signals, done, cancel)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		<-ended
		cancel(context.Canceled)
	}
}

func watch(signals <-chan os.Signal, done <-chan struct{}, cancel context.CancelCauseFunc) {
	for first := true; ; first = false {
		select {
		case <-done:
			return
		case s := <-signals:
			if n, ok := s.(syscall.Signal); ok && !first {
				os.Exit(128 + int(n))
			}
			cancel(fmt.Errorf("received %s", s))
		}
	}
}
