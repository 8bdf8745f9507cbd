package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	readyPoll = 50 * time.Millisecond
	// More than one relay publishes at once. The server's own limit of 50 atomic batches would be met by one of them.
	batchesAtOnce = 1000
)

// Server is a running server. Safe for concurrent use.
type Server struct {
	nats *server.Server
	lock *os.File
}

// Start starts the server of o.DataDir and waits until it takes connections. A directory that another server has is [ErrInUse].
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	opts, err := o.settings()
	if err != nil {
		return nil, err
	}
	held, err := lock(o.DataDir)
	if err != nil {
		return nil, err
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded: %w", err), held.Close())
	}
	log := &logger{to: o.Logger}
	ns.SetLoggerV2(log, false, false, false)
	s := &Server{nats: ns, lock: held}
	ns.Start()
	for !ns.ReadyForConnections(readyPoll) {
		if err = ctx.Err(); err == nil && ns.Running() && log.complaint() == "" {
			continue
		}
		s.Shutdown()
		return nil, fmt.Errorf("embedded: the NATS server did not start: %w", errors.Join(err, said(log.complaint())))
	}
	if !ns.JetStreamEnabled() {
		s.Shutdown()
		return nil, fmt.Errorf("embedded: JetStream did not start: %w", said(log.complaint()))
	}
	return s, nil
}

func said(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func (o Options) settings() (*server.Options, error) {
	s := &server.Options{
		ServerName: "embedded",
		JetStream:  true,
		StoreDir:   o.DataDir,
		SyncAlways: true,
		NoSigs:     true,
		DontListen: o.Addr == "",
		JetStreamLimits: server.JSLimitOpts{
			MaxBatchInflightPerStream: batchesAtOnce,
			MaxBatchInflightTotal:     batchesAtOnce,
		},
	}
	var err error
	if o.Addr != "" {
		if s.Host, s.Port, err = loopback("Addr", o.Addr); err != nil {
			return nil, err
		}
	}
	if o.MonitorAddr != "" {
		if s.HTTPHost, s.HTTPPort, err = loopback("MonitorAddr", o.MonitorAddr); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// InProcessConn returns a connection that goes through no socket.
func (s *Server) InProcessConn() (net.Conn, error) { return s.nats.InProcessConn() }

// SyncAlways reports that the server fsyncs before it acknowledges.
func (s *Server) SyncAlways() bool { return true }

// URL returns what other processes connect to, "" where the server does not listen.
func (s *Server) URL() string {
	if a, ok := s.nats.Addr().(*net.TCPAddr); ok {
		return "nats://" + a.String()
	}
	return ""
}

// MonitorURL returns the monitoring endpoint, "" where there is none.
func (s *Server) MonitorURL() string {
	if a := s.nats.MonitorAddr(); a != nil {
		return "http://" + a.String()
	}
	return ""
}

// Shutdown stops the server and waits until everything is on disk and the data directory is free. It may be called again.
func (s *Server) Shutdown() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	_ = s.lock.Close() // it is closed already where this is not the first call
}
