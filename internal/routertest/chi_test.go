package routertest

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"
)

// A guard is a middleware of chi's own shape. chi knows the pattern when a middleware of a route runs, which is what With is for; one of
// Use runs before that.
func withChi(s *shop) http.Handler {
	r := chi.NewRouter()
	r.Route("/", func(r chi.Router) {
		r = r.With(s.external(""))
		r.Post("/charges/{customer}", func(w http.ResponseWriter, r *http.Request) {
			c, err := s.charge(r, chi.URLParam(r, "customer"))
			if err != nil {
				http.Error(w, "no", http.StatusBadGateway)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Location", c.location())
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(c)
		})
		r.Post("/stream/{customer}", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
		})
		r.Post("/panic/{customer}", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("half"))
			panic("canary")
		})
	})
	r.Method(http.MethodPost, "/orders/{customer}", s.transactional(""))
	return r
}

func TestChi(t *testing.T) { prove(t, withChi) }
