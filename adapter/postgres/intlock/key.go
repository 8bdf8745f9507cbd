package intlock

import (
	"crypto/md5" //nolint:gosec // it is Spring's: java.util.UUID.nameUUIDFromBytes
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"caskeleton.dev/lock"
)

// maxRegion is REGION VARCHAR(100), in characters.
const maxRegion = 100

var uuidText = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// rowOf returns REGION and LOCK_KEY of k, as Spring's UUIDConverter makes the latter.
func rowOf(k lock.Key) (region, lockKey string, err error) {
	switch n := utf8.RuneCountInString(k.Region); {
	case n > maxRegion:
		return "", "", fmt.Errorf("intlock: Region has %d characters, and the column REGION keeps %d; shorten it, on the Java side too", n, maxRegion)
	case !utf8.ValidString(k.Region), strings.Contains(k.Region, "\x00"):
		return "", "", fmt.Errorf("intlock: Region is %q, which PostgreSQL cannot keep; use UTF-8 without NUL", k.Region)
	}
	if uuidText.MatchString(k.Name) {
		return k.Region, strings.ToLower(k.Name), nil
	}
	sum := md5.Sum([]byte(k.Name)) //nolint:gosec // as above
	sum[6] = sum[6]&0x0f | 0x30    // version 3
	sum[8] = sum[8]&0x3f | 0x80    // variant of RFC 9562
	return k.Region, uuid(sum), nil
}

// uuid is the text of b, all of whose bits it keeps.
func uuid(b [16]byte) string {
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
