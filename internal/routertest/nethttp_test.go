package routertest

import (
	"encoding/json"
	"net/http"
	"testing"
)

// The pattern that matched is the route of the key's scope.
func withNetHTTP(s *shop) http.Handler {
	guarded := s.external("")
	mux := http.NewServeMux()
	mux.Handle("POST /charges/{customer}", guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := s.charge(r, r.PathValue("customer"))
		if err != nil {
			http.Error(w, "no", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", c.location())
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(c)
	})))
	mux.Handle("POST /stream/{customer}", guarded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half"))
		_ = http.NewResponseController(w).Flush()
	})))
	mux.Handle("POST /panic/{customer}", guarded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half"))
		panic("canary")
	})))
	mux.Handle("POST /orders/{customer}", s.transactional(""))
	return mux
}

func TestNetHTTP(t *testing.T) { prove(t, withNetHTTP) }
