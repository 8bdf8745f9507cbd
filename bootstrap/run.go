package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/bootstrap/config"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
)

// drainTimeout bounds how long requests in flight may take to finish once the service is told to stop.
const drainTimeout = 20 * time.Second

// closeTimeout bounds how long the connections of those that were cut off may take to come back.
const closeTimeout = 5 * time.Second

// lookTimeout bounds the look at schema and secret before the service is ready; what it does not find out is left to the probes.
const lookTimeout = 10 * time.Second

// Run serves s until ctx is cancelled, then stops in order and returns nil. It writes "listening on http://..." to out once all
// is wired; where somebody else migrates, /readyz says when it is ready.
func Run(ctx context.Context, c *config.Config, s Service, out io.Writer, log *slog.Logger) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.HTTP.Addr)
	if err != nil {
		return fmt.Errorf("APP_HTTP_ADDR %s cannot be listened on; stop what has the port, or set another one: %w", c.HTTP.Addr, err)
	}
	p := &process{service: s, log: log}
	checks := []httpapi.Check{{Name: "database", Probe: p.usable}}
	if c.DB.ReadDSN.IsSet() {
		checks = append(checks, httpapi.Check{Name: "replica", Probe: p.replica, Degrades: true})
	}
	if p.health, err = httpapi.NewHealth(checks, &httpapi.HealthOptions{Logger: log}); err != nil {
		return err
	}
	server := httpapi.NewServer(c.HTTP.Addr, httpapi.Wrap(p.handler(), log), log)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }() // ends with Shutdown or Close below

	err = p.up(ctx, c)
	if err == nil {
		url := "http://" + ln.Addr().String()
		_, _ = fmt.Fprintf(out, "listening on %s\n", url)
		if s.Try != nil && c.Profile == config.Dev {
			_, _ = io.WriteString(out, s.Try(url))
		}
		select {
		case <-ctx.Done():
		case err = <-failed:
		case err = <-p.consumers.failed:
		case err = <-p.relay.failed:
		case err = <-p.jobs.failed:
		case err = <-p.locks.failed:
		}
	}
	return errors.Join(stopped(ctx, err), p.down(ctx, server))
}

// stopped is nil where err only says that the start was told to stop.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// process is the service between its first and its last moment.
type process struct {
	service Service
	log     *slog.Logger
	health  *httpapi.Health
	app     atomic.Pointer[App]
	routes  atomic.Pointer[http.Handler]

	// Of a service with events; empty crews otherwise.
	broker           *broker
	consumers, relay crew

	jobs, locks crew

	// enrolled says that the database knows our idempotency secret, or has learnt it.
	enrolled atomic.Bool
}

// up starts what is behind the listener, and makes the service ready.
func (p *process) up(ctx context.Context, c *config.Config) error {
	app, err := start(ctx, c, p.service, p.log)
	if err != nil {
		return err
	}
	p.app.Store(app)
	p.locks.employ(ctx, worker{"locker", app.Locker.Run})
	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	switch err := p.usable(looking); {
	case errors.Is(err, idempotency.ErrOtherSecret):
		return fault.Textf("%w; restore the secret that was used before (APP_IDEMPOTENCY_KEY_<version>, or idempotency.key in APP_DATA_DIR), "+
			"or, if no repeats of requests so far need to be recognised, delete the rows of caskeleton.idempotency_key and caskeleton.idempotency_record", err)
	case err != nil:
		p.log.WarnContext(ctx, "the database is not usable yet; the service is not ready until it is", "error", fault.Reason(err))
	}
	routes, err := p.service.Routes(app)
	if err != nil {
		return err
	}
	if p.service.Events != nil {
		if err := p.events(ctx, c, app); err != nil {
			return err
		}
	}
	reaper, err := idempotency.NewReaper(app.Idempotency, &idempotency.ReaperOptions{Interval: c.Idempotency.ReaperInterval})
	if err != nil {
		return err
	}
	jobs, err := scheduler(p.service, app)
	if err != nil {
		return err
	}
	p.jobs.employ(ctx, worker{"scheduler", jobs.Run}, worker{"idempotency reaper", reaper.Run})
	p.routes.Store(&routes)
	p.health.SetReady(true)
	return nil
}

// events starts the way out and the way in.
func (p *process) events(ctx context.Context, c *config.Config, app *App) error {
	var err error
	if p.broker, err = connectBroker(ctx, c, p.service.Name, p.log); err != nil {
		return err
	}
	if err := p.broker.check(ctx, p.log); err != nil {
		return err
	}
	relay, err := p.broker.relay(c, p.service, app)
	if err != nil {
		return err
	}
	consumers, err := p.broker.consumers(c, p.service, app)
	if err != nil {
		return err
	}
	p.relay.employ(ctx, worker{"outbox relay", relay.Run})
	p.consumers.employ(ctx, consumers...)
	return nil
}

// down stops in the reverse order. The caller is gone by then, so that the bounds are its own.
func (p *process) down(ctx context.Context, server *http.Server) error {
	p.health.Drain()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fault.Textf("requests were cut off after %v: %w", drainTimeout, err), server.Close())
	}
	err = errors.Join(err, p.jobs.end(), p.consumers.end(), p.relay.end(), p.locks.end()) // each bounds its own end
	if p.broker != nil {
		p.broker.close()
	}
	if app := p.app.Load(); app != nil {
		app.close()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout) // draining may have used up all of the other
		defer cancel()
		err = errors.Join(err, app.DB.Close(closing))
	}
	p.log.InfoContext(ctx, "stopped")
	return err
}
