package idempotency

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"caskeleton.dev/fault"
)

// maxClientKey is the longest client key accepted, in bytes.
const maxClientKey = 255

// Key says whose operation it is: the same client key of another tenant, principal, method or route is another operation.
type Key struct {
	Tenant    string
	Principal string
	Method    string // of the request: POST
	Route     string // the pattern it matched: /orders/{id}/cancel
	Client    string // what the client sent, 1 to 255 visible ASCII characters
}

func (k Key) validate() error {
	if k.Client == "" {
		return fault.New(fault.IdempotencyKeyRequired, "idempotency.Do", nil)
	}
	problem := ""
	if len(k.Client) > maxClientKey {
		problem = fmt.Sprintf("has %d bytes; at most %d are accepted", len(k.Client), maxClientKey)
	}
	for i := 0; i < len(k.Client) && problem == ""; i++ {
		if c := k.Client[i]; c < '!' || c > '~' {
			problem = fmt.Sprintf("has the byte 0x%02x at position %d", c, i+1)
		}
	}
	if problem == "" {
		return nil
	}
	return &fault.Error{Code: fault.IdempotencyKeyInvalid, Op: "idempotency.Do", Fields: []fault.Field{
		{Path: "Idempotency-Key", Problem: problem, Fix: "send 1 to 255 visible ASCII characters, a UUID for instance"},
	}}
}

// Scope is the digest under which a key's record is stored.
type Scope [sha256.Size]byte

// Keyring turns keys into scopes with an HMAC secret, so that whoever reads the table cannot test guesses of what clients sent. The
// zero Keyring is not valid.
type Keyring struct {
	version string
	secret  []byte
}

// MinSecret is the least size of a secret in bytes, that of SHA-256's output: RFC 2104 section 3 discourages shorter HMAC keys.
const MinSecret = sha256.Size

// NewKeyring returns a keyring of one secret of at least [MinSecret] bytes. version, such as "1", is stored with each record. The same version
// must always mean the same secret, in every instance: under another secret a repeat is not recognised.
func NewKeyring(version string, secret []byte) (Keyring, error) {
	if version == "" {
		return Keyring{}, errors.New("idempotency: the key version is empty; name it, for instance 1")
	}
	if len(secret) < MinSecret {
		return Keyring{}, fmt.Errorf("idempotency: the secret of key version %s has %d bytes; at least %d random bytes are needed", version, len(secret), MinSecret)
	}
	return Keyring{version, append([]byte(nil), secret...)}, nil
}

// scope is HMAC-SHA-256 over the parts, each behind its length, so that no two lists of parts read the same.
func (r Keyring) scope(k Key) Scope {
	h := hmac.New(sha256.New, r.secret)
	for _, part := range []string{r.version, k.Tenant, k.Principal, k.Method, k.Route, k.Client} {
		writePart(h, part)
	}
	return Scope(h.Sum(nil))
}

// check is what the secret is known by. Its text begins like no scope's, whose first byte is 0.
func (r Keyring) check() []byte {
	h := hmac.New(sha256.New, r.secret)
	_, _ = io.WriteString(h, "caskeleton idempotency key check") // hash.Hash never fails
	return h.Sum(nil)
}

func writePart[P string | []byte](h hash.Hash, part P) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(part)))
	_, _ = h.Write(n[:]) // hash.Hash never fails
	_, _ = io.WriteString(h, string(part))
}

// Fingerprint is the digest of a whole request.
type Fingerprint [sha256.Size]byte

// NewFingerprint is SHA-256 over the parts of a request, each behind its length. route is the concrete path where one pattern serves
// many resources, so that a key used again for another resource is noticed.
func NewFingerprint(method, route, rawQuery, contentType string, body []byte) Fingerprint {
	h := sha256.New()
	for _, part := range []string{method, route, rawQuery, contentType} {
		writePart(h, part)
	}
	writePart(h, body)
	return Fingerprint(h.Sum(nil))
}
