package httpapi_test

import (
	"bufio"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
)

func TestServerBounds(t *testing.T) {
	var log logBook
	srv := httpapi.NewServer("127.0.0.1:0", http.NotFoundHandler(), log.logger())
	require.Equal(t, "127.0.0.1:0", srv.Addr)
	require.Equal(t, 5*time.Second, srv.ReadHeaderTimeout)
	require.Equal(t, 15*time.Second, srv.ReadTimeout)
	require.Equal(t, 60*time.Second, srv.WriteTimeout)
	require.Equal(t, 2*time.Minute, srv.IdleTimeout)
	require.Equal(t, 32<<10, srv.MaxHeaderBytes)

	srv.ErrorLog.Print("http: TLS handshake error")
	require.Equal(t, "WARN", log.lines(t, "http: TLS handshake error")[0]["level"])
}

func TestServerRefusesHugeHeaders(t *testing.T) {
	srv := httpapi.NewServer("", http.NotFoundHandler(), nil)
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", ln.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write(append([]byte("GET / HTTP/1.1\r\nHost: shop\r\nX: "), make([]byte, 40<<10)...))
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, res.StatusCode)
}
