package httpapi

import "strconv"

// ETag returns the strong entity tag (RFC 9110, 8.8.3) of a resource at a version: 3 is `"3"`, quotes included.
func ETag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }
