package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/reqctx"
)

// idempotencyKeyHeader is the request header of the IETF draft "The Idempotency-Key HTTP Header Field".
const idempotencyKeyHeader = "Idempotency-Key"

// replayedHeader marks an answer that comes from the store.
const replayedHeader = "Idempotent-Replayed"

// keyOf returns the scope of a request. The route is the pattern that matched, without its method and host.
func (p Policy) keyOf(r *http.Request) (idempotency.Key, error) {
	client, err := clientKey(r.Header.Values(idempotencyKeyHeader))
	if err != nil {
		return idempotency.Key{}, err
	}
	route := p.Route
	if i := strings.IndexByte(r.Pattern, '/'); i >= 0 && route == "" {
		route = r.Pattern[i:]
	}
	if route == "" {
		route = r.URL.EscapedPath()
	}
	key := idempotency.Key{
		Tenant: reqctx.Tenant(r.Context()), Principal: reqctx.Principal(r.Context()), Method: r.Method, Route: route, Client: client,
	}
	return key, key.Validate()
}

// clientKey reads the header as the draft has it, a quoted string (RFC 9651, 3.3.3), and as most clients send it, bare. Both spell one key.
func clientKey(values []string) (string, error) {
	invalid := func(problem string) error {
		return &fault.Error{Code: fault.IdempotencyKeyInvalid, Op: "httpapi.clientKey", Fields: []fault.Field{
			{Path: idempotencyKeyHeader, Problem: problem, Fix: "send one header of 1 to 255 visible ASCII characters without quote and backslash, a UUID for instance"},
		}}
	}
	switch {
	case len(values) == 0:
		return "", fault.New(fault.IdempotencyKeyRequired, "httpapi.clientKey", nil)
	case len(values) > 1:
		return "", invalid("is sent more than once")
	}
	key := values[0]
	if inner, ok := strings.CutPrefix(key, `"`); ok {
		if key, ok = strings.CutSuffix(inner, `"`); !ok {
			return "", invalid("opens with a quote and does not end with one")
		}
	} else if strings.Contains(key, ",") {
		return "", invalid("has a comma, as if sent more than once; put a key with a comma in quotes") // a proxy joins repeated headers so
	}
	switch {
	case key == "":
		return "", invalid("is empty")
	case strings.ContainsAny(key, `"\`): // a quoted string would spell them otherwise than a bare one
		return "", invalid("has a quote or a backslash in it")
	}
	return key, nil
}

// fingerprint is of the concrete path, not the pattern: one key for two resources is two requests. The path is that which the client sent, where
// it is known: what mounts a handler twice may have stripped what tells the two apart.
func fingerprint(r *http.Request, body []byte) idempotency.Fingerprint {
	sent := r.URL
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil {
		sent = u
	}
	return idempotency.NewFingerprint(r.Method, sent.EscapedPath(), sent.RawQuery, r.Header.Get("Content-Type"), body)
}
