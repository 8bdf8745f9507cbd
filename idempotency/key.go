package idempotency

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

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

// Validate refuses a client key that is missing, with IDEMPOTENCY_KEY_REQUIRED, or malformed, with IDEMPOTENCY_KEY_INVALID, as [Do] does.
func (k Key) Validate() error {
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

// String returns the scope in hexadecimal.
func (s Scope) String() string { return hex.EncodeToString(s[:]) }

// ParseScope reads what [Scope.String] wrote.
func ParseScope(text string) (Scope, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(Scope{}) {
		return Scope{}, fmt.Errorf("idempotency: %q is no scope; give its %d hexadecimal digits", text, 2*len(Scope{}))
	}
	return Scope(b), nil
}

// Keyring turns keys into scopes with an HMAC secret, so that whoever reads the table cannot test guesses of what clients sent. The
// zero Keyring is not valid.
type Keyring struct {
	version string
	secret  []byte
	others  []Keyring // of one version each
}

// MinSecret is the least size of a secret in bytes, that of SHA-256's output: RFC 2104 section 3 discourages shorter HMAC keys.
const MinSecret = sha256.Size

// NewKeyring returns a keyring of one secret of at least [MinSecret] bytes. version, such as "1", is stored with each record. The same version
// must always mean the same secret, in every instance: under another secret a repeat is not recognised. It is a part of the scope, too: what package
// bootstrap and the command line make of APP_IDEMPOTENCY_KEY_V1 is the version "v1".
func NewKeyring(version string, secret []byte) (Keyring, error) {
	if version == "" {
		return Keyring{}, errors.New("idempotency: the key version is empty; name it, for instance 1")
	}
	if len(secret) < MinSecret {
		return Keyring{}, fmt.Errorf("idempotency: the secret of key version %s has %d bytes; at least %d random bytes are needed", version, len(secret), MinSecret)
	}
	return Keyring{version: version, secret: append([]byte(nil), secret...)}, nil
}

// Accept returns a keyring that also finds records made under another version, and makes none under it. To rotate, let all instances accept
// the new version first, and make it the current one of their keyrings afterwards: an instance that does not know it would run repeats.
func (r Keyring) Accept(version string, secret []byte) (Keyring, error) {
	other, err := NewKeyring(version, secret)
	if err != nil {
		return Keyring{}, err
	}
	for _, known := range r.all() {
		if known.version == version {
			return Keyring{}, fmt.Errorf("idempotency: the key version %s is given twice; a version is one secret", version)
		}
	}
	r.others = append(slices.Clone(r.others), other)
	return r, nil
}

// all returns the versions, the current one first.
func (r Keyring) all() []Keyring { return append([]Keyring{r}, r.others...) }

// scopes returns what a key is found under, the current version first.
func (r Keyring) scopes(k Key) []Scope {
	scopes := make([]Scope, 0, 1+len(r.others))
	for _, v := range r.all() {
		scopes = append(scopes, v.scope(k))
	}
	return scopes
}

// checks returns what the secrets are known by, by version.
func (r Keyring) checks() map[string][]byte {
	checks := make(map[string][]byte, 1+len(r.others))
	for _, v := range r.all() {
		checks[v.version] = v.check()
	}
	return checks
}

// scope is HMAC-SHA-256 over the parts, each behind its length, so that no two lists of parts read the same.
func (r Keyring) scope(k Key) Scope {
	h := hmac.New(sha256.New, r.secret)
	for _, part := range []string{r.version, k.Tenant, k.Principal, k.Method, k.Route, k.Client} {
		writePart(h, []byte(part))
	}
	return Scope(h.Sum(nil))
}

// check is what the secret is known by. Its text begins like no scope's, whose first byte is 0.
func (r Keyring) check() []byte {
	h := hmac.New(sha256.New, r.secret)
	_, _ = io.WriteString(h, "caskeleton idempotency key check") // hash.Hash never fails
	return h.Sum(nil)
}

func writePart(h hash.Hash, part []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(part)))
	_, _ = h.Write(n[:]) // hash.Hash never fails
	_, _ = h.Write(part)
}

// Fingerprint is the digest of a whole request.
type Fingerprint [sha256.Size]byte

// NewFingerprint is SHA-256 over the parts of a request, each behind its length. route is the concrete path where one pattern serves
// many resources, so that a key used again for another resource is noticed.
func NewFingerprint(method, route, rawQuery, contentType string, body []byte) Fingerprint {
	h := sha256.New()
	for _, part := range []string{method, route, rawQuery, contentType} {
		writePart(h, []byte(part))
	}
	writePart(h, body)
	return Fingerprint(h.Sum(nil))
}
