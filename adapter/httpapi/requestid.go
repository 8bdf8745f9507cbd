package httpapi

import (
	"crypto/rand"
	"net/http"
)

// requestIDHeader carries the id of a request, in and out.
const requestIDHeader = "X-Request-Id"

const maxRequestID = 128

// requestID returns the id that the caller gave, where it is fit to be logged and echoed, else a new one of 130 random bits.
func requestID(r *http.Request) string {
	if ids := r.Header.Values(requestIDHeader); len(ids) == 1 && validRequestID(ids[0]) {
		return ids[0]
	}
	return rand.Text()
}

func validRequestID(id string) bool {
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return id != "" && len(id) <= maxRequestID
}
