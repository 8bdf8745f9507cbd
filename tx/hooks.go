package tx

import (
	"context"
	"fmt"

	"caskeleton.dev/fault"
)

// runHooks runs the hooks outside of any transaction: one of the runner's that may still be active further out is hidden from them.
func (c *core) runHooks(ctx context.Context, hooks []func(context.Context) error) {
	ctx = c.with(context.WithoutCancel(ctx), nil)
	for i, hook := range hooks {
		if err := c.runHook(ctx, hook); err != nil {
			c.log.ErrorContext(ctx, "after-commit hook failed; the transaction has committed", "hook", i, "error", fault.Reason(err))
		}
	}
}

// runHook runs a hook on a goroutine of its own, so that runtime.Goexit in it ends neither the caller nor the next hook.
func (c *core) runHook(ctx context.Context, hook func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.hooks)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := error(fault.Text("the hook ended its goroutine"))
		defer func() {
			if p := recover(); p != nil {
				err = fault.Text(fmt.Sprintf("panic of type %T", p)) // its value may hold what nobody may log
			}
			ended <- err
		}()
		err = hook(ctx)
	}()
	return <-ended
}
