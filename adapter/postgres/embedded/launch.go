package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// background starts the program and ends at once, so that the server is nobody's child and leaves no zombie behind. Descriptor 3 is
// the locked running file.
const background = `"$@" & echo $! >&3`

// launch starts the server in a session of its own, where no Ctrl-C reaches it. It does not wait until the server is ready.
func (a *area) launch(ctx context.Context, in Installation, port int, o Options) error {
	running, err := a.root.OpenFile(runningFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	defer running.Close()
	if ok, err := tryLock(running); err != nil || !ok {
		return errors.Join(err, errExited)
	}
	if err := running.Truncate(0); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	if err := a.root.Rename(logFile, logFile+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("embedded: %w", err)
	}
	log, err := a.root.OpenFile(logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	defer log.Close()

	args := []string{"-c", background, "sh", filepath.Join(in.BinDir, "postgres"), "-D", a.cluster()}
	for k, v := range o.settings(port) {
		args = append(args, "-c", k+"="+v)
	}
	cmd := a.acct.command(ctx, a.cluster(), "/bin/sh", args...)
	cmd.SysProcAttr.Setsid = true
	cmd.ExtraFiles = []*os.File{running}
	cmd.Stdout, cmd.Stderr = log, log
	// A running server would hold the lock taken above, so none runs here, and the pid in a file that is left may be another process's
	// by now. PostgreSQL takes the pid named here for dead, and still checks that nobody uses the old shared memory.
	cmd.Env = append(cmd.Env, "PG_GRANDPARENT_PID="+strconv.Itoa(a.pidFile().pid))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("embedded: launch PostgreSQL in %s: %w", a.path, err)
	}
	return nil
}

// choosePort prefers the port asked for, then that of the last launch, then any.
func (a *area) choosePort(want int) (int, error) {
	if want != 0 {
		if !portFree(want) {
			return 0, fmt.Errorf("embedded: port %d of 127.0.0.1 is in use: stop what listens there, or set Port to 0 for any free one", want)
		}
		return want, nil
	}
	if b, err := a.root.ReadFile(portFile); err == nil {
		if last, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && portFree(last) {
			return last, nil
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a local bind does not wait
	if err != nil {
		return 0, fmt.Errorf("embedded: no free port: %w", err)
	}
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("embedded: no free port: unexpected address %s", l.Addr())
	}
	return addr.Port, nil
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // a local bind does not wait
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
