package outbox

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"
)

// newID returns a UUID of version 7 (RFC 9562 section 5.7): the time in milliseconds, its fraction in the next 12 bits (section 6.2,
// method 3), then chance. The time keeps the index on ids compact, and is no promise about order.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[8:]) // never fails, says crypto/rand
	now := time.Now()
	fraction := uint16(now.Nanosecond() % 1e6 * 4096 / 1e6) //nolint:gosec // below 4096
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16|0x7000|uint64(fraction))
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// isUUID reports whether s is a UUID as PostgreSQL and newID write it, so that equal ids are equal texts.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
