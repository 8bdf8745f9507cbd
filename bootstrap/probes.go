package bootstrap

import (
	"context"
	"net/http"
	"time"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/fault"
)

// handler serves the probes from the first moment on, and the service's routes once they are there.
func (p *process) handler() http.Handler {
	probes := httpapi.NewMux(p.log)
	probes.Handle("GET /livez", http.HandlerFunc(p.health.Livez))
	probes.Handle("GET /readyz", http.HandlerFunc(p.health.Readyz))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch routes := p.routes.Load(); {
		case r.URL.Path == "/livez" || r.URL.Path == "/readyz":
			probes.ServeHTTP(w, r)
		case routes != nil:
			(*routes).ServeHTTP(w, r)
		default:
			httpapi.WriteProblem(w, r, &fault.Error{Code: fault.DBUnavailable, Op: "bootstrap.Run", After: time.Second}, p.log)
		}
	})
}

// usable reports whether the database answers, has the schema and, once, knows our idempotency secret. It reads the schema over a
// connection of its own: a pool that is merely busy would take the whole service out of rotation just when it is needed most.
func (p *process) usable(ctx context.Context) error {
	app := p.app.Load()
	if err := app.schema.Verify(ctx); err != nil || p.enrolled.Load() {
		return err
	}
	if err := app.Idempotency.Enroll(ctx); err != nil {
		return err
	}
	p.enrolled.Store(true)
	return nil
}

// replica reports why reads that ask for the replica get the primary.
func (p *process) replica(context.Context) error {
	if s, ok := p.app.Load().DB.Replica(); ok && !s.Serving {
		return fault.Textf("the primary serves its reads: it is %s", s.Reason)
	}
	return nil
}
