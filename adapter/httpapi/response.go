package httpapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"caskeleton.dev/fault"
)

// storedHeaders are what a stored answer keeps: what the body and the resource are. Everything else belongs to one exchange, such as
// Set-Cookie, Date and the request id, and must not reach whoever repeats the request.
var storedHeaders = []string{
	"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length", "Content-Location", "Content-Type", "Etag", "Last-Modified",
	"Link", "Location", "Vary",
}

// Response is an answer as a value: it can be stored before it is sent, and sent again.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON returns a response with v as its body.
func JSON(status int, v any) (*Response, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fault.Textf("httpapi: the answer is not JSON: %w", err)
	}
	return &Response{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
}

func (r *Response) validate() error {
	switch {
	case r.Status < 200 || r.Status > 599:
		return fault.Textf("httpapi: the response has status %d; use 200 to 599", r.Status)
	case len(r.Body) > 0 && !bodyAllowed(r.Status):
		return fault.Textf("httpapi: the response has status %d and a body of %d bytes; that status has none", r.Status, len(r.Body))
	}
	return nil
}

// bodyAllowed is RFC 9110, 15.3.5, 15.3.6 and 15.4.5.
func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusResetContent && status != http.StatusNotModified
}

// answerForm begins a stored response, so that no JSON is taken for one.
const answerForm = "http"

// AnswerForm implements [idempotency.Formed].
func (*Response) AnswerForm() string { return answerForm }

// head is the rest of the first line of a stored response; the body follows as it is.
type head struct {
	Status int                 `json:"status"`
	Header map[string][]string `json:"header,omitempty"`
	Raw    map[string][][]byte `json:"raw,omitempty"` // those that are no UTF-8, as JSON's text must be
}

// keep adds the values of a header that may be replayed. net/http sends a name however it is spelled; "ETag" is not canonical.
func (h *head) keep(name string, values []string) {
	name = http.CanonicalHeaderKey(name)
	switch {
	case !slices.Contains(storedHeaders, name):
	case slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }):
		for _, v := range values {
			h.Raw[name] = append(h.Raw[name], []byte(v))
		}
	default:
		h.Header[name] = append(h.Header[name], values...)
	}
}

// MarshalBinary returns what is stored: status, the headers that may be replayed, and the body byte for byte.
func (r *Response) MarshalBinary() ([]byte, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	h := head{r.Status, map[string][]string{}, map[string][][]byte{}}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		h.keep(name, r.Header[name])
	}
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(answerForm+" "), line, []byte{'\n'}, r.Body), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (r *Response) UnmarshalBinary(data []byte) error {
	data, formed := bytes.CutPrefix(data, []byte(answerForm+" "))
	line, body, whole := bytes.Cut(data, []byte{'\n'})
	if !formed || !whole {
		return fault.Text("httpapi: not a stored response; one that settles an operation needs a status")
	}
	var h head
	if err := json.Unmarshal(line, &h); err != nil {
		return fault.Textf("httpapi: not a stored response: %w", err)
	}
	*r = Response{Status: h.Status, Header: http.Header{}, Body: bytes.Clone(body)}
	maps.Copy(r.Header, h.Header)
	for name, values := range h.Raw {
		for _, v := range values {
			r.Header[name] = append(r.Header[name], string(v))
		}
	}
	return r.validate()
}

// Write sends the response. It holds nothing but memory, so a slow reader costs no connection of the pool.
func (r *Response) Write(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	maps.Copy(h, r.Header)
	// An answer to HEAD may say how long the body would be.
	told := req.Method == http.MethodHead && len(r.Body) == 0 && h.Get("Content-Length") != ""
	if bodyAllowed(r.Status) && !told {
		h.Set("Content-Length", strconv.Itoa(len(r.Body)))
	}
	w.WriteHeader(r.Status)
	if req.Method != http.MethodHead && len(r.Body) > 0 {
		// A caller that left meanwhile asks again if it must know.
		_, _ = w.Write(r.Body) //nolint:gosec // the service's own answer, with its own Content-Type and nosniff
	}
}
