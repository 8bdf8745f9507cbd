package httpapi

import (
	"log/slog"
	"net/http"

	"caskeleton.dev/fault"
)

// HandlerFunc is a handler that returns what went wrong in place of rendering it. It must not return an error for an answer that it has
// written itself.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// Mux is an [http.ServeMux], with its patterns, whose own refusals are problems too: [fault.RouteNotFound] and
// [fault.MethodNotAllowed], the latter with Allow. Register everything before serving; serving is safe for concurrent use.
type Mux struct {
	mux *http.ServeMux
	log *slog.Logger
}

// NewMux returns an empty mux. Errors of its handlers go to log; nil means slog.Default().
func NewMux(log *slog.Logger) *Mux { return &Mux{mux: http.NewServeMux(), log: log} }

// Handle registers a handler that renders its own errors. It panics on an invalid or conflicting pattern, as [http.ServeMux.Handle] does.
func (m *Mux) Handle(pattern string, h http.Handler) { m.mux.Handle(pattern, h) }

// HandleFunc registers a handler whose errors are rendered by [WriteProblem]. It panics as [Mux.Handle] does.
func (m *Mux) HandleFunc(pattern string, h HandlerFunc) {
	m.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			WriteProblem(w, r, err, m.log)
		}
	})
}

// ServeHTTP dispatches to the handler whose pattern fits best.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := trackerOf(w)
	if t == nil {
		t = &tracker{ResponseWriter: w}
		w = t
	}
	if _, pattern := m.mux.Handler(r); pattern != "" {
		t.route = pattern
		m.mux.ServeHTTP(w, r)
		return
	}
	own := &refusal{header: make(http.Header)}
	m.mux.ServeHTTP(own, r)
	switch {
	case own.status < http.StatusBadRequest: // to the cleaned path, where the client then learns more
		m.mux.ServeHTTP(w, r)
	case own.status == http.StatusNotFound:
		WriteProblem(w, r, fault.RouteNotFound, m.log)
	case own.status == http.StatusMethodNotAllowed:
		w.Header()["Allow"] = own.header["Allow"]
		WriteProblem(w, r, fault.MethodNotAllowed, m.log)
	default: // "OPTIONS *"
		WriteProblem(w, r, fault.Malformed("httpapi.Mux", nil), m.log)
	}
}

// refusal learns what a ServeMux would have answered.
type refusal struct {
	header http.Header
	status int
}

func (f *refusal) Header() http.Header         { return f.header }
func (f *refusal) Write(b []byte) (int, error) { return len(b), nil }
func (f *refusal) WriteHeader(status int)      { f.status = status }
