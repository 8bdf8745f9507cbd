package natsbroker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"caskeleton.dev/fault"
)

const (
	defaultTimeout = 5 * time.Second
	maxReconnect   = 2 * time.Second // between two tries; more would be downtime after the broker's
	pingInterval   = 10 * time.Second
)

// InProcess is a server that runs in this process: *embedded.Server.
type InProcess interface {
	InProcessConn() (net.Conn, error)
	SyncAlways() bool
}

// ConnOptions configure a [Conn]. The zero value is the default.
type ConnOptions struct {
	Name        string        // shown by the server's monitoring; "" means caskeleton
	Server      InProcess     // connect to this one; the URL is then ""
	Credentials string        // path of a .creds file, "" for none
	MonitorURL  string        // of the server that stores the streams; where its sync_always is read
	Timeout     time.Duration // bound on each request; 0 means 5 s
	Logger      *slog.Logger  // nil means slog.Default()
}

// Conn is a connection to NATS that reconnects for ever. Safe for concurrent use.
type Conn struct {
	nc   *nats.Conn
	js   jetstream.JetStream
	opts ConnOptions
}

// Connect returns a connection to the servers of a comma-separated list of URLs (nats://host:4222). It does not wait for the broker: while
// none is there, publishing fails with outbox.ErrBrokerDown. Errors are about the options; they hold no URL, which may have a password.
func Connect(servers string, o *ConnOptions) (*Conn, error) {
	c := &Conn{}
	if o != nil {
		c.opts = *o
	}
	c.opts.Name = cmp.Or(c.opts.Name, "caskeleton")
	c.opts.Timeout = cmp.Or(c.opts.Timeout, defaultTimeout)
	c.opts.Logger = cmp.Or(c.opts.Logger, slog.Default())
	if err := c.opts.validate(servers); err != nil {
		return nil, err
	}
	log := c.opts.Logger
	opts := []nats.Option{
		nats.Name(c.opts.Name),
		nats.Timeout(c.opts.Timeout),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(func(n int) time.Duration { return min(maxReconnect, 50*time.Millisecond<<min(n, 6)) }),
		// What is published while no server is there fails at once, instead of being sent when its caller has long given up.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingInterval),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("NATS connection lost", "error", fault.Reason(told(err)))
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) { log.Info("NATS connected", "server", nc.ConnectedServerName()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("NATS reported an error", "error", fault.Reason(told(err)))
		}),
	}
	if c.opts.Server != nil {
		opts = append(opts, nats.InProcessServer(c.opts.Server))
	}
	if c.opts.Credentials != "" {
		opts = append(opts, nats.UserCredentials(c.opts.Credentials))
	}
	var err error
	if c.nc, err = nats.Connect(servers, opts...); err != nil {
		return nil, fault.Textf("natsbroker: connect: %w", told(err))
	}
	if c.js, err = jetstream.New(c.nc, jetstream.WithDefaultTimeout(c.opts.Timeout)); err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("natsbroker: %w", err)
	}
	return c, nil
}

func (o *ConnOptions) validate(servers string) error {
	if o.Timeout < 0 {
		return fmt.Errorf("natsbroker: Timeout is %v; it must be positive, or 0 for %v", o.Timeout, defaultTimeout)
	}
	if o.MonitorURL != "" {
		if u, err := url.Parse(o.MonitorURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("natsbroker: MonitorURL is no URL of a monitoring endpoint: use http://host:8222")
		}
	}
	if o.Server != nil {
		if servers != "" {
			return errors.New("natsbroker: there are server URLs and an in-process Server: leave one out")
		}
		return nil
	}
	for i, s := range strings.Split(servers, ",") {
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil || u.Host == "" {
			return fmt.Errorf("natsbroker: server URL %d is no URL: use nats://host:4222, several of them divided by commas", i+1)
		}
	}
	return nil
}

// Connected reports whether a server is there at the moment.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }

// Close ends the connection. Publishers and consumers on it fail from then on.
func (c *Conn) Close() { c.nc.Close() }

// epoch changes with every reconnect, since the next server may have other settings.
func (c *Conn) epoch() uint64 { return c.nc.Stats().Reconnects }

// bounded returns ctx with the connection's timeout.
func (c *Conn) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.opts.Timeout)
}
