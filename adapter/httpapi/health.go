package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// HealthOptions tune a [Health]. Zero fields mean the defaults.
type HealthOptions struct {
	Timeout time.Duration // of each check; 2 s
	Logger  *slog.Logger  // nil means slog.Default()
}

// Health answers liveness and readiness probes. A new one is not ready. It is safe for concurrent use.
type Health struct {
	checks   []*checkRunner
	ready    atomic.Bool
	draining atomic.Bool
}

// NewHealth returns a Health whose readiness depends on checks. Names must be unique; they are the only thing about a check that callers
// get to see.
func NewHealth(checks []Check, o *HealthOptions) (*Health, error) {
	var opts HealthOptions
	if o != nil {
		opts = *o
	}
	if opts.Timeout < 0 {
		return nil, fmt.Errorf("httpapi: HealthOptions.Timeout is %v; give a positive duration, or 0 for 2s", opts.Timeout)
	}
	if opts.Timeout == 0 {
		opts.Timeout = 2 * time.Second
	}
	h := &Health{}
	seen := make(map[string]bool)
	for _, c := range checks {
		if c.Name == "" || c.Probe == nil || seen[c.Name] {
			return nil, fmt.Errorf("httpapi: health check %q needs a name of its own and a Probe", c.Name)
		}
		seen[c.Name] = true
		h.checks = append(h.checks, &checkRunner{Check: c, timeout: opts.Timeout, log: loggerOr(opts.Logger)})
	}
	return h, nil
}

// SetReady says whether start-up is done: migrated, connected, guards passed. Until then Readyz refuses without asking the checks.
func (h *Health) SetReady(ready bool) { h.ready.Store(ready) }

// Drain makes Readyz refuse for good, since the process is about to stop.
func (h *Health) Drain() { h.draining.Store(true) }

// Livez answers 200 as long as the process can answer at all. It asks no dependency: restarting us would not mend one.
func (h *Health) Livez(w http.ResponseWriter, r *http.Request) {
	writeHealth(w, r, http.StatusOK, healthAnswer{Status: "live"})
}

// Readyz answers 200 where start-up is done, no shutdown has begun and every check passes, else 503 with the reason ("starting", "draining"
// or "failing") and the names of the failing checks. Checks that only degrade readiness are named in either case. It asks anew each time,
// so it recovers by itself.
func (h *Health) Readyz(w http.ResponseWriter, r *http.Request) {
	answer := healthAnswer{Status: "unready"}
	switch {
	case h.draining.Load():
		answer.Reason = "draining"
	case !h.ready.Load():
		answer.Reason = "starting"
	default:
		answer.Failing, answer.Degraded = h.failing(r.Context())
		if len(answer.Failing) > 0 {
			answer.Reason = "failing"
			break
		}
		answer.Status = "ready"
		writeHealth(w, r, http.StatusOK, answer)
		return
	}
	writeHealth(w, r, http.StatusServiceUnavailable, answer)
}

// failing runs the checks side by side and returns the names of those that failed, in the order they were given: what readiness depends on, and
// what it only reports.
func (h *Health) failing(ctx context.Context) (failing, degraded []string) {
	errs := make([]error, len(h.checks))
	var wg sync.WaitGroup
	for i, c := range h.checks {
		wg.Go(func() { errs[i] = c.run(ctx) })
	}
	wg.Wait()
	for i, err := range errs {
		switch c := h.checks[i]; {
		case err == nil:
		case c.Degrades:
			degraded = append(degraded, c.Name)
		default:
			failing = append(failing, c.Name)
		}
	}
	return failing, degraded
}

type healthAnswer struct {
	Status   string   `json:"status"`
	Reason   string   `json:"reason,omitempty"`
	Failing  []string `json:"failing,omitempty"`
	Degraded []string `json:"degraded,omitempty"`
}

func writeHealth(w http.ResponseWriter, r *http.Request, status int, answer healthAnswer) {
	if t := trackerOf(w); t != nil {
		t.quiet = true
	}
	res, err := JSON(status, answer)
	if err != nil { // strings alone always marshal
		panic(err)
	}
	res.Header.Set("Cache-Control", "no-store")
	res.Write(w, r)
}
