package lock

import (
	"crypto/sha256"
	"strings"
)

// maxDisplay is how many characters of a key are kept to be read by people.
const maxDisplay = 200

// Digest identifies a key within a store: SHA-256 over region and name, each exactly.
type Digest [sha256.Size]byte

// Key is what is locked: a name, exact to the byte and of any length, in a region. Regions keep applications apart that share a store.
type Key struct{ Region, Name string }

// Digest returns what identifies k. The region's length stands in front, so that no other split of the same bytes gives the same one.
func (k Key) Digest() Digest {
	h := sha256.New()
	var n [8]byte
	for i, l := 0, len(k.Region); i < len(n); i, l = i+1, l>>8 {
		n[i] = byte(l)
	}
	_, _ = h.Write(n[:]) // a hash never fails
	_, _ = h.Write([]byte(k.Region + k.Name))
	return Digest(h.Sum(nil))
}

// Display returns the first 200 characters of the name, fit for any store and any log: what is not valid UTF-8, and NUL, is replaced by U+FFFD.
func (k Key) Display() string {
	s := strings.ReplaceAll(strings.ToValidUTF8(k.Name, "\uFFFD"), "\x00", "\uFFFD")
	n := 0
	for i := range s {
		if n == maxDisplay {
			return s[:i]
		}
		n++
	}
	return s
}
