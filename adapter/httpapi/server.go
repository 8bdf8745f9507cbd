package httpapi

import (
	"log/slog"
	"net/http"
	"time"
)

// NewServer returns a server for h on addr, with every bound set:
//
//   - the header within 5 s of the connection's first byte, and at most 32 KiB of it (net/http allows 4 KiB more);
//   - the whole request within 15 s: a caller slower than that is cut off, so that a stalled upload ends before the 20 s that a service has
//     for its last requests when it is told to stop;
//   - the answer within 60 s of the end of the header, so at least 45 s after that of the body;
//   - 2 min between two requests: longer than the 60 s at which most load balancers give up first.
//
// A handler that streams moves its own bounds with [http.ResponseController]. What net/http has to say, such as a failed TLS handshake,
// goes to log as a warning; nil means slog.Default(). The caller serves, and shuts down.
func NewServer(addr string, h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(loggerOr(log).Handler(), slog.LevelWarn),
	}
}
