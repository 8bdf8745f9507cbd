package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"

	"caskeleton.dev/fault"
	"caskeleton.dev/reqctx"
)

// ProblemType is the media type of an error answer (RFC 9457).
const ProblemType = "application/problem+json"

// problemTypePrefix plus the code is a problem's type. RFC 9457 wants a type's title to be the same each time, which rules out
// about:blank (its title is the status phrase), and prefers absolute URIs that need not resolve, which a URN is: it stays the same
// wherever the service is mounted.
const problemTypePrefix = "urn:caskeleton:problem:"

// statusClientClosed is nginx's status for a caller that went away. Nobody is meant to read it: it keeps access logs honest.
const statusClientClosed = 499

// Problem is the body of an error answer.
type Problem struct {
	Type       string        `json:"type"`                  // identifies the code
	Title      string        `json:"title"`                 // the code's client text
	Status     int           `json:"status"`                // as in the status line
	Code       string        `json:"code"`                  // what clients match on
	RequestID  string        `json:"request_id,omitempty"`  // as in the X-Request-Id header, and in the log
	RetryAfter int64         `json:"retry_after,omitempty"` // whole seconds, rounded up, as in the Retry-After header; 0: nothing is known
	Errors     []fault.Field `json:"errors,omitempty"`      // what is wrong with the input
}

// NewProblem returns what a client may know about err. A nil err, and one without a code, read as [fault.Internal]. Fields are left
// out of a 5xx: there the input that was wrong is ours.
func NewProblem(ctx context.Context, err error) Problem {
	code, status := fault.CodeOf(err), fault.StatusOf(err)
	p := Problem{
		Type:      problemTypePrefix + code.String(),
		Title:     code.ClientText(),
		Status:    status,
		Code:      code.String(),
		RequestID: reqctx.RequestID(ctx),
	}
	if after, ok := fault.RetryAfter(err); ok {
		p.RetryAfter = int64(math.Ceil(after.Seconds()))
	}
	if status < http.StatusInternalServerError {
		p.Errors = fault.FieldsOf(err)
	}
	return p
}

// WriteProblem answers the request with what a client may know about err, and logs the rest of it; a nil log means slog.Default(). It is meant
// for errors: a nil err is answered as [fault.Internal].
//
// Where the caller has gone away and err only says so, the answer is an empty 499, logged at debug level. Where the response has begun
// already (which is known inside [Wrap] and a [Mux]), the connection is aborted with a panic of [http.ErrAbortHandler], so that nobody
// takes a torn answer for a whole one.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error, log *slog.Logger) {
	res := trackerOf(w)
	if callerGone(r, res, err) {
		logGone(r, log)
		if res == nil || !res.started() {
			w.Header().Set("Connection", "close")
			w.WriteHeader(statusClientClosed)
		}
		return
	}
	logError(r, log, err)
	if res != nil {
		res.code = fault.CodeOf(err).String()
		if res.started() {
			panic(http.ErrAbortHandler)
		}
	}
	NewProblem(r.Context(), err).write(w, r)
}

// callerGone reports whether err, which carries no code of its own, comes from the caller's leaving. A code stays: an unknown commit is
// one, whoever has left meanwhile.
func callerGone(r *http.Request, res *tracker, err error) bool {
	if err == nil || fault.CodeOf(err) != fault.Internal {
		return false
	}
	if res != nil && res.failed != nil && errors.Is(err, res.failed) {
		return true
	}
	ctx := r.Context()
	return errors.Is(ctx.Err(), context.Canceled) && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)))
}

// response is p as a value.
func (p Problem) response() *Response {
	body, err := json.Marshal(p)
	if err != nil { // strings and numbers alone always marshal
		panic(err)
	}
	return &Response{Status: p.Status, Header: http.Header{"Content-Type": {ProblemType}, "Cache-Control": {"no-store"}}, Body: body}
}

func (p Problem) write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for _, name := range []string{"Content-Encoding", "Content-Range", "ETag", "Last-Modified", "Location"} {
		h.Del(name) // they described the answer that is not given
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	h.Set("X-Content-Type-Options", "nosniff")
	p.response().Write(w, r)
}
