package httpapi

import (
	"log/slog"
	"net/http"
	"time"
)

// The bounds of a server. A handler that streams moves its own with [http.ResponseController].
const (
	ReadHeaderTimeout = 5 * time.Second  // from the connection's first byte to the end of the header
	ReadTimeout       = 30 * time.Second // to the end of the body: a caller slower than that is cut off
	WriteTimeout      = 60 * time.Second // from the end of the header to the end of the answer, so at least 30 s more than the body has
	IdleTimeout       = 2 * time.Minute  // between two requests; longer than the 60 s at which most load balancers give up first
	MaxHeaderBytes    = 32 << 10         // net/http allows 4 KiB more
)

// NewServer returns a server for h on addr, with every bound set. What net/http has to say, such as a failed TLS handshake, goes to log
// as a warning; nil means slog.Default(). The caller serves, and shuts down.
func NewServer(addr string, h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           h,
		ReadHeaderTimeout: ReadHeaderTimeout,
		ReadTimeout:       ReadTimeout,
		WriteTimeout:      WriteTimeout,
		IdleTimeout:       IdleTimeout,
		MaxHeaderBytes:    MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(loggerOr(log).Handler(), slog.LevelWarn),
	}
}
