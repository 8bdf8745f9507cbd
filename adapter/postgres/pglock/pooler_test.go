package pglock_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pglock"
	"caskeleton.dev/lock"
)

// pooler returns the address of what answers like one, for one connection: with a process id that is not the server's.
func pooler(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	server, err := net.Dial("tcp", u.Host) //nolint:noctx // a test's own
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's own
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = listener.Close()
		_ = server.Close()
		<-done
	})
	go func() {
		defer close(done)
		client, err := listener.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
		head := make([]byte, 5) // the type of a message and the length of the rest, itself included
		for {
			if _, err := io.ReadFull(server, head); err != nil {
				return
			}
			body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
			if _, err := io.ReadFull(server, body); err != nil {
				return
			}
			if head[0] == 'K' { // BackendKeyData
				body[0] ^= 1
			}
			if _, err := client.Write(slices.Concat(head, body)); err != nil {
				return
			}
		}
	}()
	u.Host = listener.Addr().String()
	return u.String()
}

func TestListeningThroughAPoolerIsRefused(t *testing.T) {
	n := newNode(t, postgres.Config{})
	locks, err := pglock.New(n.db, &pglock.Options{ListenDSN: pooler(t, n.dsn)})
	require.NoError(t, err)
	err = locks.Listen(t.Context(), func() { t.Error("ready") }, func(lock.Digest) {})
	require.ErrorContains(t, err, "set ListenDSN")
}
