package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"caskeleton.dev/fault"
)

// ReadBody returns the whole body of a request that must be JSON, at most limit bytes of it. limit must be positive. Refused are, each
// with what to send instead:
//
//   - a Content-Type other than application/json, with or without charset=utf-8, and any Content-Encoding but identity:
//     [fault.MediaTypeUnsupported] (415);
//   - a longer body: [fault.BodyTooLarge] (413), without reading it where its length was announced; the connection closes;
//   - a body that did not arrive in full, since the caller left or was slower than the server's ReadTimeout:
//     [fault.RequestInvalid] (400); the connection closes.
//
// A body that something before has read, such as [http.Request.ParseForm], is [fault.Internal]: it is not taken for an empty one.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := checkMediaType("httpapi.ReadBody", r.Header); err != nil {
		return nil, err
	}
	return readAll(w, r, limit)
}

// readAll is [ReadBody] of any media type. Memory grows as the body arrives, whatever length was announced.
func readAll(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	const op = "httpapi.ReadBody"
	tooLarge := fault.Field{
		Path:    "body",
		Problem: fmt.Sprintf("is larger than %d bytes", limit),
		Fix:     fmt.Sprintf("send at most %d bytes", limit),
	}
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close")
		return nil, &fault.Error{Code: fault.BodyTooLarge, Op: op, Fields: []fault.Field{tooLarge}}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	switch {
	case err == nil && len(body) == 0 && (r.ContentLength > 0 || len(r.PostForm) > 0 || r.MultipartForm != nil):
		return nil, fault.New(fault.Internal, op, errors.New("httpapi: the body was read before; put what parses it behind what guards the route"))
	case err == nil:
		return body, nil
	}
	w.Header().Set("Connection", "close")
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, &fault.Error{Code: fault.BodyTooLarge, Op: op, Err: err, Fields: []fault.Field{tooLarge}}
	}
	return nil, fault.Malformed(op, err, fault.Field{
		Path:    "body",
		Problem: "did not arrive in full",
		Fix:     "send the whole body, faster or over a better connection",
	})
}

func checkMediaType(op string, h http.Header) error {
	unsupported := func(field, problem, fix string) error {
		return &fault.Error{Code: fault.MediaTypeUnsupported, Op: op, Fields: []fault.Field{{Path: field, Problem: problem, Fix: fix}}}
	}
	if !isJSON(h.Values("Content-Type")) {
		return unsupported("Content-Type", "is not application/json in UTF-8", "send Content-Type: application/json")
	}
	for _, coding := range h.Values("Content-Encoding") {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return unsupported("Content-Encoding", "is not accepted", "send the body without compression")
		}
	}
	return nil
}

func isJSON(types []string) bool {
	if len(types) != 1 {
		return false
	}
	mediaType, params, err := mime.ParseMediaType(types[0])
	if err != nil || mediaType != "application/json" {
		return false
	}
	for name, value := range params {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return false
		}
	}
	return true
}
