package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
)

// Options say which server [Start] starts.
type Options struct {
	// DataDir is where the server keeps its streams; it is required, made if missing, and used by one server at a time.
	DataDir string
	// Addr is a loopback address for other processes, "127.0.0.1:4222"; port 0 takes any free one. "" means that there is none: this
	// process connects by [Server.InProcessConn].
	Addr string
	// MonitorAddr is a loopback address for the server's monitoring endpoint, which tells its settings and its clients. "" means none.
	MonitorAddr string
	// Logger is told the server's warnings and errors, and its notices at level debug. nil means slog.Default().
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.DataDir == "" {
		return o, errors.New("embedded: DataDir is required: name a directory for the server's data")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}

// loopback splits an address. The server's own way to say "any free port" is -1.
func loopback(field, addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("embedded: %s %q is no address: use a loopback address with a port, such as 127.0.0.1:4222", field, addr)
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return "", 0, fmt.Errorf("embedded: %s %q is not a loopback address: the embedded server asks for no password; use 127.0.0.1, or a NATS server of its own", field, addr)
	}
	if port == 0 {
		port = -1
	}
	return host, port, nil
}
