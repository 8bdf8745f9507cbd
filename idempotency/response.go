package idempotency

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// ResponseStore keeps answers over the inline limit outside of the database. Its methods are those of an S3 client: PutObject, GetObject,
// DeleteObject and ListObjectsV2. An object is put before the record that refers to it commits, so that a lost one is no answer: it is
// an orphan, which the reaper deletes. Safe for concurrent use.
type ResponseStore interface {
	// Put stores an object durably before it returns, whole or not at all. Nobody puts a ref twice.
	Put(ctx context.Context, ref Ref, object []byte) error
	// Get returns the object, byte for byte.
	Get(ctx context.Context, ref Ref) ([]byte, error)
	// Delete removes the object; that there is none is no error.
	Delete(ctx context.Context, ref Ref) error
	// List returns up to limit refs in ascending order, those after the given one; "" is before all.
	List(ctx context.Context, after Ref, limit int) ([]Ref, error)
}

// Ref names an object of a [ResponseStore]: the scope in hexadecimal, the operation and a part that is unique, joined by slashes. The last ends
// with the object's SHA-256, by which an object that comes back otherwise is noticed. All of it is safe in an object key and in the name
// of a file.
type Ref string

func newRef(c Claim, object []byte) Ref {
	return Ref(c.Scope.String() + "/" + c.Operation + "/" + rand.Text() + digestOf(object))
}

// digestOf is what the ref of an object ends with.
func digestOf(object []byte) string {
	sum := sha256.Sum256(object)
	return "-" + hex.EncodeToString(sum[:])
}

// of reports whether object is what was put as r.
func (r Ref) of(object []byte) bool { return strings.HasSuffix(string(r), digestOf(object)) }

// Split returns the scope and the operation of a ref.
func (r Ref) Split() (Scope, string, error) {
	parts := strings.Split(string(r), "/")
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return Scope{}, "", fmt.Errorf("idempotency: %q is no ref: scope/operation/unique-digest is", string(r))
	}
	scope, err := ParseScope(parts[0])
	return scope, parts[1], err
}
