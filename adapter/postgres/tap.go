package postgres

import (
	"context"
	"encoding/binary"
	"io"
	"regexp"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// tap reads along with what the server sends on one connection, for the tags of statements that begin or end a transaction. pgx shows neither
// those of all statements in a text, nor of a batch that is only closed; and what ends a transaction and begins the next leaves no other trace.
type tap struct {
	in         io.Reader
	head       []byte // the type and length of the message that is being read
	rest       int    // of its body
	tag        []byte // its body, as far as it matters
	ended      bool   // a statement has ended the transaction
	rolledBack bool   // one of this call has undone it, or a part of it
}

const (
	headSize        = 5
	commandComplete = 'C'
	longestTag      = 32
)

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	for b := p[:n]; len(b) > 0; {
		b = t.see(b)
	}
	return n, err
}

// see takes a part of one message and returns what comes after it.
func (t *tap) see(b []byte) []byte {
	if k := min(headSize-len(t.head), len(b)); k > 0 {
		t.head = append(t.head, b[:k]...)
		if b = b[k:]; len(t.head) < headSize {
			return b
		}
		t.rest, t.tag = int(binary.BigEndian.Uint32(t.head[1:]))-4, t.tag[:0]
	}
	k := min(t.rest, len(b))
	if t.head[0] == commandComplete && len(t.tag) < longestTag {
		t.tag = append(t.tag, b[:min(k, longestTag-len(t.tag))]...)
	}
	if t.rest -= k; t.rest == 0 {
		if t.head[0] == commandComplete {
			t.complete(string(t.tag))
		}
		t.head = t.head[:0]
	}
	return b[k:]
}

// complete takes note of a tag. ROLLBACK is also that of ROLLBACK TO SAVEPOINT, which is fn's right.
func (t *tap) complete(tag string) {
	switch tag {
	case "COMMIT\x00", "PREPARE TRANSACTION\x00":
		t.ended = true
	case "ROLLBACK\x00":
		t.rolledBack = true
	case "BEGIN\x00", "START TRANSACTION\x00":
		t.ended = t.ended || t.rolledBack
	}
}

// install gives each connection of a pool a tap. It is a hook of pgxpool, which hands it a configuration for one connection.
func install(_ context.Context, cc *pgx.ConnConfig) error {
	t := &tap{}
	cc.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		*t = tap{in: r} // of the host that is tried now
		return pgproto3.NewFrontend(t, w)
	}
	cc.AfterConnect = func(_ context.Context, server *pgconn.PgConn) error {
		server.CustomData()[tapName] = t
		return nil
	}
	return nil
}

const tapName = "caskeleton.tap"

// tapOf returns the tap of a connection, for a transaction that begins now.
func tapOf(server *pgconn.PgConn) *tap {
	t := server.CustomData()[tapName].(*tap) //nolint:errcheck,forcetypeassert // see install
	t.ended, t.rolledBack = false, false
	return t
}

// ran takes note of what SQL of fn's did to the transaction itself. What was rolled back may have been the witness's row.
func (c *conn) ran(sql ...string) {
	if c.tap.rolledBack {
		c.witness = nil
		c.ended = c.ended || slices.ContainsFunc(sql, chaining.MatchString)
	}
	c.ended = c.ended || c.tap.ended
	c.tap.rolledBack = false
}

// chaining finds ROLLBACK AND CHAIN in a text that has rolled something back: the next transaction has begun, and nothing else tells.
var chaining = regexp.MustCompile(`(?i)\band` + blank + `+chain\b`)

// commits reports whether sql begins with a COMMIT.
func commits(sql string) bool { return committing.MatchString(sql) }

// committing allows for comments in front, which sqlc writes. One with another inside is not seen.
var committing = regexp.MustCompile(`(?i)^` + blank + `*(commit|end)\b`)

const blank = `(?:\s|--[^\n]*\n|/\*(?s:.*?)\*/)`
