package httpapi_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/fault"
)

func dial(t *testing.T, s *service, request string) *net.TCPConn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	tcp, ok := conn.(*net.TCPConn)
	require.True(t, ok)
	return tcp
}

func readAnswer(t *testing.T, conn net.Conn) answer {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return answer{res, string(body)}
}

const halfAnOrder = "POST /orders HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n{\"customer_id\""

func requireCutOff(t *testing.T, s *service) {
	t.Helper()
	failures := s.log.lines(t, "request failed")
	require.Len(t, failures, 1)
	require.Equal(t, "INFO", failures[0]["level"])
	require.Equal(t, "REQUEST_INVALID", failures[0]["code"])
	require.Contains(t, failures[0]["error"], "httpapi.ReadBody: REQUEST_INVALID")
	require.NotContains(t, failures[0]["error"], "127.0.0.1", "it is the caller's address")
}

func TestCallerTooSlow(t *testing.T) {
	s := serve(t, orderRoutes, func(c *http.Server) { c.ReadTimeout = 50 * time.Millisecond })
	a := readAnswer(t, dial(t, s, halfAnOrder))
	require.Equal(t, http.StatusBadRequest, a.StatusCode)
	require.True(t, a.Close)
	require.Equal(t, "did not arrive in full", a.problem(t).Errors[0].Problem)
	s.Close()
	requireCutOff(t, s)
}

func TestCallerStopsHalfway(t *testing.T) {
	s := serve(t, orderRoutes)
	conn := dial(t, s, halfAnOrder)
	require.NoError(t, conn.CloseWrite())
	a := readAnswer(t, conn)
	require.Equal(t, http.StatusBadRequest, a.StatusCode)
	require.True(t, a.Close)
	s.Close()
	requireCutOff(t, s)
}

func TestCallerLeavesHalfway(t *testing.T) {
	entered, done := make(chan struct{}), make(chan error, 1)
	s := serve(t, func(m *httpapi.Mux) {
		m.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) error {
			close(entered)
			_, err := httpapi.ReadBody(w, r, bodyLimit)
			done <- err
			return err
		})
	})
	conn := dial(t, s, halfAnOrder)
	<-entered
	require.NoError(t, conn.SetLinger(0)) // a reset, not a goodbye
	require.NoError(t, conn.Close())
	require.ErrorIs(t, <-done, fault.RequestInvalid)
	s.Close()
	requireCutOff(t, s)
}

func TestTooLargeClosesUnread(t *testing.T) {
	s := serve(t, orderRoutes)
	for name, request := range map[string]string{
		"announced": "Content-Length: 1000000\r\nExpect: 100-continue\r\n\r\n",
		"chunked":   "Transfer-Encoding: chunked\r\n\r\n200\r\n" + string(make([]byte, 0x200)) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			a := readAnswer(t, dial(t, s, "POST /orders HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n"+request))
			require.Equal(t, http.StatusRequestEntityTooLarge, a.StatusCode, "the caller was asked for more")
			require.True(t, a.Close)
			require.Equal(t, "is larger than 256 bytes", a.problem(t).Errors[0].Problem)
		})
	}
}

func TestContentHeaders(t *testing.T) {
	s := serve(t, orderRoutes)
	for _, header := range [][]string{
		{"Content-Type", "application/json", "Content-Encoding", "gzip"},
		{"Content-Type", "application/json", "Content-Encoding", "identity", "Content-Encoding", "br"},
	} {
		a := s.do(t, "POST", "/orders", "{}", header...)
		require.Equal(t, http.StatusUnsupportedMediaType, a.StatusCode)
		require.Equal(t, "Content-Encoding", a.problem(t).Errors[0].Path)
	}
	a := s.do(t, "POST", "/orders", "{}", "Content-Type", "application/json", "Content-Type", "text/plain")
	require.Equal(t, http.StatusUnsupportedMediaType, a.StatusCode)
	require.Equal(t, "Content-Type", a.problem(t).Errors[0].Path)
}
