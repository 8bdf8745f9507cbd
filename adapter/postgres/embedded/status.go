package embedded

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// holder reports whether a server runs here, and its pid: 0 while it is being launched.
func (a *area) holder() (pid int, running bool, err error) {
	f, err := a.root.OpenFile(runningFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 0, false, fmt.Errorf("embedded: %w", err)
	}
	defer f.Close()
	free, err := tryLock(f)
	if err != nil || free {
		return 0, false, err
	}
	b, err := a.root.ReadFile(runningFile)
	if err != nil {
		return 0, false, fmt.Errorf("embedded: %w", err)
	}
	pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	return pid, true, nil
}

// pidFile is what a server says about itself in postmaster.pid; it is zero where that is missing or not yet complete.
type pidFile struct {
	pid  int
	dir  string
	port int
}

func (a *area) pidFile() pidFile {
	b, err := a.root.ReadFile(clusterDir + "/postmaster.pid")
	if err != nil {
		return pidFile{}
	}
	var lines [4]string // pid, data directory, start time, port
	for i, s := 0, bufio.NewScanner(bytes.NewReader(b)); i < len(lines) && s.Scan(); i++ {
		lines[i] = strings.TrimSpace(s.Text())
	}
	pid, _ := strconv.Atoi(lines[0])
	port, _ := strconv.Atoi(lines[3])
	return pidFile{pid: max(pid, 0), dir: lines[1], port: port}
}

// await waits until the server that runs here can be logged in to. It returns errExited where there is none (any more).
func (a *area) await(ctx context.Context, o Options) (*Server, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		pid, running, err := a.holder()
		if err != nil {
			return nil, err
		}
		if !running {
			return nil, errExited
		}
		srv, err := a.ready(ctx, pid, o)
		if srv != nil || err != nil {
			return srv, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("embedded: PostgreSQL in %s was not ready in time (crash recovery may take longer): %w; its log is %s",
				a.path, ctx.Err(), filepath.Join(a.path, logFile))
		}
	}
}

// ready returns the server once it has said where it listens and lets us in, and nil while it has not.
func (a *area) ready(ctx context.Context, pid int, o Options) (*Server, error) {
	f := a.pidFile()
	if pid == 0 || f.pid != pid || f.port == 0 || !sameDir(f.dir, a.cluster()) {
		return nil, nil //nolint:nilnil // not ready is no error
	}
	if o.Port != 0 && o.Port != f.port {
		return nil, fmt.Errorf("embedded: PostgreSQL in %s already listens on port %d, not on %d: stop it, or set Port to 0", a.path, f.port, o.Port)
	}
	password, err := a.root.ReadFile(passwordFile)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	srv := &Server{path: a.path, acct: a.acct, pid: pid, port: f.port, database: o.Database, password: string(password)}
	conn, err := srv.login(ctx)
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && strings.HasPrefix(pg.Code, "28") {
		return nil, fmt.Errorf("embedded: PostgreSQL in %s refuses the password in %s: stop it and start again, or remove the directory",
			a.path, filepath.Join(a.path, passwordFile))
	}
	if err != nil {
		return nil, nil //nolint:nilnil // it is starting, or stopping: the lock and the context bound the wait
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var dir string
	err = conn.QueryRow(ctx, `SELECT current_setting('data_directory'), split_part(current_setting('server_version'), ' ', 1)`).Scan(&dir, &srv.version)
	if err != nil || !sameDir(dir, a.cluster()) {
		return nil, nil //nolint:nilnil // as above
	}
	srv.binDir = a.binDir()
	return srv, srv.ensureDatabase(ctx, conn)
}

// binDir is where the running server's program is: the first word of postmaster.opts, which quotes all others.
func (a *area) binDir() string {
	b, _ := a.root.ReadFile(clusterDir + "/postmaster.opts")
	program, _, _ := strings.Cut(string(b), ` "`)
	return filepath.Dir(program)
}

func sameDir(x, y string) bool {
	a, err1 := os.Stat(x)
	b, err2 := os.Stat(y)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// login connects to the maintenance database. SCRAM proves both sides, so that whatever else listens there never sees the password.
func (s *Server) login(ctx context.Context) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(s.dsn("postgres"))
	if err != nil {
		return nil, errors.New("embedded: the DSN of the server cannot be parsed")
	}
	cfg.RequireAuth = "scram-sha-256"
	cfg.ConnectTimeout = 2 * time.Second
	return pgx.ConnectConfig(ctx, cfg)
}
