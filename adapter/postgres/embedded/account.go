package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"time"
)

// account is whom PostgreSQL runs as. The zero account is the current user.
type account struct {
	uid, gid int
	drop     bool // we are root, which PostgreSQL refuses to run as
}

func currentAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "_postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err1, err2); err != nil {
			return account{}, fmt.Errorf("embedded: user %s: %w", name, err)
		}
		return account{uid: uid, gid: gid, drop: true}, nil
	}
	return account{}, errors.New("embedded: PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as: " +
		"add one, run as another user, or set DATABASE_URL")
}

// command prepares a program to run as the account in dir. The environment is a fixed one: PG* variables of the caller would steer it.
func (a account) command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	cmd.WaitDelay = 5 * time.Second
	if a.drop {
		// The identity is dropped in the child, before it changes to dir and executes the program.
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)} //nolint:gosec // ids of a passwd entry
	}
	return cmd
}

// reaches reports whether the account can enter dir. It tries, since groups, ACLs and mounts decide as well as the mode bits.
func (a account) reaches(ctx context.Context, dir string) (bool, error) {
	err := a.command(ctx, dir, "/bin/sh", "-c", ":").Run()
	if errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("embedded: become uid %d in %s: %w", a.uid, dir, err)
	}
	return true, nil
}
