package embedded

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Server is a running PostgreSQL. It holds no resource: letting go of it leaves the server running. Safe for concurrent use.
type Server struct {
	path, binDir, version string
	acct                  account
	pid, port             int
	database, password    string
}

// DSN returns the address of the server's database for its superuser, with the password: it belongs in no log.
func (s *Server) DSN() string { return s.dsn(s.database) }

func (s *Server) dsn(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Port returns the TCP port on 127.0.0.1. It stays the same over restarts for as long as nobody else takes it.
func (s *Server) Port() int { return s.port }

// PID returns the process id of the postmaster that was found or started.
func (s *Server) PID() int { return s.pid }

// Version returns the server's version, such as 16.14.
func (s *Server) Version() string { return s.version }

// BinDir returns where the server's programs are.
func (s *Server) BinDir() string { return s.binDir }

// DataDir returns where the server lives, which under root may be elsewhere than asked.
func (s *Server) DataDir() string { return s.path }

// Stop ends the server in order: sessions are ended, everything is written (pg_ctl's "fast"). It returns when the last process is gone,
// or with an error when ctx is done.
func (s *Server) Stop(ctx context.Context) error { return stopAt(ctx, s.path, s.acct, syscall.SIGINT) }

// StopImmediate ends the server without writing anything (pg_ctl's "immediate"): the next start has to recover.
func (s *Server) StopImmediate(ctx context.Context) error {
	return stopAt(ctx, s.path, s.acct, syscall.SIGQUIT)
}

// Kill ends the postmaster by SIGKILL and returns when its children have noticed and are gone, too.
func (s *Server) Kill(ctx context.Context) error {
	return stopAt(ctx, s.path, s.acct, syscall.SIGKILL)
}

// Format prints where the server is, whatever the verb, and never the password.
func (s *Server) Format(w fmt.State, _ rune) {
	_, _ = fmt.Fprintf(w, "PostgreSQL %s on 127.0.0.1:%d in %s", s.version, s.port, s.path)
}

func (s *Server) ensureDatabase(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = $1)`, s.database).Scan(&there)
	if err == nil && !there {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{s.database}.Sanitize())
	}
	if err != nil {
		return fmt.Errorf("embedded: database %s in %s: %w", s.database, s.path, err)
	}
	return nil
}
