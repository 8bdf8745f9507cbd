package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"caskeleton.dev/fault"
)

// ETag returns the strong entity tag (RFC 9110, 8.8.3) of a resource at a version: 3 is `"3"`, quotes included.
func ETag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }

// IfMatch tells which versions of a resource a request may change.
type IfMatch struct {
	any  bool
	tags []string
}

// RequireIfMatch reads the If-Match header (RFC 9110, 13.1.1) of a request that must not overwrite what its caller has not seen. It
// returns PRECONDITION_REQUIRED where there is none, and REQUEST_INVALID where it cannot be read.
func RequireIfMatch(r *http.Request) (IfMatch, error) {
	const op = "httpapi.RequireIfMatch"
	values := r.Header.Values("If-Match")
	if len(values) == 0 {
		return IfMatch{}, fault.New(fault.PreconditionRequired, op, nil)
	}
	var m IfMatch
	for tag := range strings.SplitSeq(strings.Join(values, ","), ",") {
		switch tag = strings.TrimSpace(tag); {
		case tag == "*":
			m.any = true
		case strings.HasPrefix(tag, "W/"): // a weak tag never matches strongly
		case len(tag) >= 2 && tag[0] == '"' && tag[len(tag)-1] == '"' && !strings.Contains(tag[1:len(tag)-1], `"`):
			m.tags = append(m.tags, tag)
		default:
			return IfMatch{}, fault.Malformed(op, nil, fault.Field{
				Path: "If-Match", Problem: "is not a list of entity tags", Fix: `send the resource's ETag as it was received, quotes included`,
			})
		}
	}
	return m, nil
}

// Check returns PRECONDITION_FAILED unless the resource, which is at version, may be changed.
func (m IfMatch) Check(version int64) error {
	if m.any || slices.Contains(m.tags, ETag(version)) {
		return nil
	}
	return fault.New(fault.PreconditionFailed, "httpapi.IfMatch", nil)
}
