package httpapi

import (
	"bufio"
	"net"
	"net/http"
)

// tracker is a ResponseWriter that remembers what became of the response. Like the response itself it belongs to one goroutine.
type tracker struct {
	http.ResponseWriter
	status int    // of the final header; 0 until it is written
	bytes  int64  // of the body
	failed error  // of the first write that did not reach the caller
	route  string // the pattern that was matched
	code   string // of the problem that was answered
	quiet  bool   // routine: logged at debug level
}

// trackerOf finds the tracker of a response through the wrappers around it; nil where there is none.
func trackerOf(w http.ResponseWriter) *tracker {
	for {
		switch v := w.(type) {
		case *tracker:
			return v
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return nil
		}
	}
}

func (t *tracker) started() bool { return t.status != 0 }

func (t *tracker) WriteHeader(status int) {
	if !t.started() && (status >= 200 || status == http.StatusSwitchingProtocols) {
		t.status = status
	}
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracker) Write(b []byte) (int, error) {
	t.implicitHeader()
	n, err := t.ResponseWriter.Write(b)
	t.bytes += int64(n)
	if err != nil && t.failed == nil {
		t.failed = err
	}
	return n, err
}

func (t *tracker) implicitHeader() {
	if !t.started() {
		t.status = http.StatusOK
	}
}

// Flush is for those who ask for an [http.Flusher].
func (t *tracker) Flush() { _ = t.FlushError() }

// FlushError is what [http.ResponseController] calls.
func (t *tracker) FlushError() error {
	t.implicitHeader()
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// Hijack is for those who ask for an [http.Hijacker].
func (t *tracker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(t.ResponseWriter).Hijack()
}

// Unwrap lets [http.ResponseController] reach everything else: deadlines, full duplex.
func (t *tracker) Unwrap() http.ResponseWriter { return t.ResponseWriter }
