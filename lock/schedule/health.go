package schedule

import (
	"context"
	"log/slog"
	"sync"

	"caskeleton.dev/fault"
)

// health logs that the store began to fail, fails in another way, or works again: once each, however many jobs find out. Safe for concurrent use.
type health struct {
	log  *slog.Logger
	mu   sync.Mutex
	code string // of the last failure, "" if the last call worked
}

func (h *health) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // it says nothing of the store
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil && h.code != "":
		h.code = ""
		h.log.InfoContext(ctx, "schedule store works again")
	case err != nil && h.code != fault.CodeOf(err).String():
		h.code = fault.CodeOf(err).String()
		h.log.ErrorContext(ctx, "schedule store fails; no job starts until it works", "error", fault.Reason(err))
	}
}
