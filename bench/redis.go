package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"caskeleton.dev/internal/testprog"
)

// redisServer is a Redis of the bench's own, that keeps nothing.
type redisServer struct {
	addr, version string
	cmd           *exec.Cmd
}

// startRedis starts redis-server on a port that was free a moment ago, and waits until it answers.
func startRedis(ctx context.Context) (*redisServer, error) {
	prog, err := testprog.Find(ctx, "redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &redisServer{addr: ln.Addr().String()}
	if err := ln.Close(); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return nil, err
	}
	s.cmd = prog.Command(context.WithoutCancel(ctx), "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		if s.version, err = s.info(waiting); err == nil {
			return s, nil
		}
		select {
		case <-waiting.Done():
			s.stop()
			return nil, fmt.Errorf("bench: redis-server does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// info returns the server's version.
func (s *redisServer) info(ctx context.Context) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("INFO server\r\n")); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), "redis_version:"); ok {
			return v, nil
		}
	}
	return "", errors.Join(lines.Err(), errors.New("no version in its answer"))
}

func (s *redisServer) stop() {
	_ = s.cmd.Process.Kill() // it keeps nothing
	_ = s.cmd.Wait()
}
