package proxytest

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
)

// link is one connection of a client and its counterpart to the server.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	fault          atomic.Pointer[Fault] // that struck here
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// cancelRequest is the code of the message by which pgx asks, on a connection of its own, to stop the work of one that it gives up.
// None is passed on: it would race with what a fault lets the server do.
const cancelRequest = 80877102

// requests passes the client's messages on, one at a time, until a side is closed or a fault says so.
func (l *link) requests() {
	in := bufio.NewReader(l.client)
	header := 4 // the first message, which opens the session or cancels a query, has no type
	for {
		message, err := read(in, header)
		if err != nil {
			l.close()
			return
		}
		if header == 4 && len(message) == 16 && binary.BigEndian.Uint32(message[4:]) == cancelRequest {
			l.close()
			return
		}
		if header == 5 && (message[0] == 'Q' || message[0] == 'S') { // a query or a Sync, each answered by one ReadyForQuery
			l.proxy.trips.Add(1)
		}
		header = 5
		if f := l.proxy.strikes(message); f != nil {
			l.fault.Store(f)
			switch f.mode {
			case Before, Half:
				if f.mode == Half {
					_, _ = l.server.Write(message[:(len(message)+1)/2])
				}
				l.close()
				close(f.struck)
				return
			case After, Late:
				_ = l.client.Close() // first, or a quick answer would get through
				if f.mode == Late {
					close(f.struck)
					l.await(f)
				}
				_, _ = l.server.Write(message)
				if f.mode == After {
					close(f.struck)
				}
				return // the server's side ends with its answer
			}
		}
		if _, err := l.server.Write(message); err != nil {
			l.close()
			return
		}
	}
}

// await waits until the message of a late fault may pass, or there is nobody left who could let it.
func (l *link) await(f *Fault) {
	select {
	case <-f.pass:
	case <-l.proxy.closes:
	}
}

// read returns the next message: a header, whose last four bytes are the length of themselves and the rest.
func read(in *bufio.Reader, header int) ([]byte, error) {
	head, err := in.Peek(header)
	if err != nil {
		return nil, err
	}
	message := make([]byte, header-4+int(binary.BigEndian.Uint32(head[header-4:])))
	_, err = io.ReadFull(in, message)
	return message, err
}

// answers passes on what the server sends, until a side is closed or a fault says so.
func (l *link) answers() {
	defer l.close()
	buf := make([]byte, 32<<10)
	for dropped := false; ; {
		n, err := l.server.Read(buf)
		if err != nil {
			return
		}
		f := l.fault.Load()
		if f == nil || f.mode == After || f.mode == Late { // whose client is gone: Write says so
			if _, err := l.client.Write(buf[:n]); err != nil {
				return
			}
			continue
		}
		if f.mode == OnAnswer {
			l.close()
		}
		if !dropped {
			dropped = true
			close(f.struck)
		}
	}
}
