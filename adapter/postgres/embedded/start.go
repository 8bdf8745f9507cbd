package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
)

// Start returns the server of o.DataDir: the one that runs there already, or else a new one, whose cluster is made where there is none.
// Any number of processes may call it at once. It waits for crash recovery until ctx is done. Errors are [ErrNoPostgres],
// [ErrDataVersion], [ErrUntrusted], or say what PostgreSQL said.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	acct, err := currentAccount()
	if err != nil {
		return nil, err
	}
	path, err := place(ctx, o.DataDir, acct)
	if err != nil {
		return nil, err
	}
	if abs, _ := filepath.Abs(o.DataDir); path == elsewhere(abs) {
		o.Logger.WarnContext(ctx, "PostgreSQL's user cannot reach the data directory, another one is used", "asked", abs, "data_dir", path)
	}
	a, err := makeArea(ctx, path, acct)
	if err != nil {
		return nil, err
	}
	defer a.close()

	srv, err := a.await(ctx, o)
	if err == nil {
		o.Logger.InfoContext(ctx, "attached to PostgreSQL", "version", srv.version, "port", srv.port, "data_dir", a.path)
	}
	if !errors.Is(err, errExited) {
		return srv, err
	}
	in, err := o.installation(ctx, acct)
	if err != nil {
		return nil, err
	}
	if err := a.ensureCluster(ctx, in, o); err != nil {
		return nil, err
	}
	srv, err = a.run(ctx, in, o)
	if err == nil {
		o.Logger.InfoContext(ctx, "started PostgreSQL", "version", srv.version, "port", srv.port, "data_dir", a.path, "bin_dir", srv.binDir)
	}
	return srv, err
}

func (o Options) installation(ctx context.Context, acct account) (Installation, error) {
	if o.BinDir != "" {
		return inspect(ctx, o.BinDir, acct)
	}
	return Find(ctx, o.Logger)
}

// run launches the server and waits for it; again, where another process took the port in between.
func (a *area) run(ctx context.Context, in Installation, o Options) (*Server, error) {
	for {
		port, err := a.choosePort(o.Port)
		if err != nil {
			return nil, err
		}
		if err := a.write(portFile, strconv.Itoa(port)); err != nil {
			return nil, fmt.Errorf("embedded: %w", err)
		}
		if err := a.launch(ctx, in, port, o); err != nil {
			return nil, err
		}
		srv, err := a.await(ctx, o)
		if errors.Is(err, errExited) && !portFree(port) {
			continue
		}
		if errors.Is(err, errExited) {
			log, _ := a.root.ReadFile(logFile)
			return nil, fmt.Errorf("embedded: %w in %s at its start: %s", errExited, a.path, lastLines(log, 4))
		}
		return srv, err
	}
}
