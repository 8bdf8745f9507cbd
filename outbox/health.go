package outbox

import (
	"context"
	"log/slog"

	"caskeleton.dev/fault"
)

// health logs that a call of the store began to fail, fails in another way, or works again: once each, however long it lasts. Not safe
// for concurrent use.
type health struct {
	log  *slog.Logger
	call string
	code string // of the last failure, "" if the last call worked
}

func (h *health) note(ctx context.Context, err error) {
	switch {
	case err == nil && h.code != "":
		h.code = ""
		h.log.InfoContext(ctx, "outbox store works again", "call", h.call)
	case err != nil && h.code != fault.CodeOf(err).String():
		h.code = fault.CodeOf(err).String()
		h.log.ErrorContext(ctx, "outbox store fails; the relay goes on trying", "call", h.call, "error", fault.Reason(err))
	}
}
