package httpapi

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"strings"

	"caskeleton.dev/fault"
)

// buffer is a ResponseWriter that keeps a response whole, and remembers why one cannot be. It keeps it as net/http would send it: the header
// is that of the first WriteHeader or Write, and a status without a body has none.
type buffer struct {
	header http.Header // the handler's, who may go on to change it
	sent   http.Header // as it was when the handler answered
	status int         // 0 until then
	body   []byte
	limit  int
	broken error // the first thing that cannot be kept
}

func (b *buffer) Header() http.Header { return b.header }

func (b *buffer) WriteHeader(status int) {
	switch {
	case b.status != 0:
	case status == http.StatusSwitchingProtocols:
		_ = b.refuse(fault.Text("httpapi: the response switches protocols, which cannot be replayed"))
	case status >= 100 && status < 200: // interim: it belongs to one exchange
	default:
		b.status = status
		b.sent = b.header.Clone()
	}
}

func (b *buffer) Write(p []byte) (int, error) {
	if b.status == 0 {
		b.WriteHeader(http.StatusOK)
	}
	switch {
	case !bodyAllowed(b.status):
		return 0, http.ErrBodyNotAllowed
	case len(p) > b.limit-len(b.body):
		return 0, b.refuse(fault.Textf("httpapi: the response is over Policy.MaxResponse, %d bytes", b.limit))
	}
	b.body = append(b.body, p...)
	return len(p), nil
}

// FlushError refuses: what is flushed would be read before it is stored.
func (b *buffer) FlushError() error {
	return b.refuse(fault.Textf("httpapi: the response is streamed, which cannot be replayed: %w", http.ErrNotSupported))
}

// Hijack refuses.
func (b *buffer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, b.refuse(fault.Textf("httpapi: the connection is hijacked, which cannot be replayed: %w", http.ErrNotSupported))
}

func (b *buffer) refuse(err error) error {
	if b.broken == nil {
		b.broken = err
	}
	return err
}

// response returns what the handler answered to a request of the method.
func (b *buffer) response(method string) (*Response, error) {
	if b.status == 0 {
		b.WriteHeader(http.StatusOK)
	}
	if declared := b.sent.Get("Content-Length"); method != http.MethodHead && bodyAllowed(b.status) && declared != "" && declared != strconv.Itoa(len(b.body)) {
		_ = b.refuse(fault.Textf("httpapi: the response has %d bytes and another Content-Length", len(b.body)))
	}
	if method != http.MethodHead || len(b.body) > 0 {
		b.sent.Del("Content-Length") // the body tells
	}
	if b.sent.Get("Trailer") != "" {
		_ = b.refuse(errTrailers)
	}
	for name := range b.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			_ = b.refuse(errTrailers)
		}
	}
	if b.broken != nil {
		return nil, b.broken
	}
	res := &Response{Status: b.status, Header: b.sent, Body: b.body}
	return res, res.validate()
}

var errTrailers error = fault.Text("httpapi: the response has trailers, which cannot be replayed")
