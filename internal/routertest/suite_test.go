package routertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// shop is a service that charges customers at a provider, and keeps orders in its own database.
type shop struct {
	db    *postgres.DB
	guard *idempotency.Guard

	mu      sync.Mutex
	charges map[string]int // by customer
}

func open(t *testing.T) *shop {
	t.Helper()
	s := &shop{charges: map[string]int{}}
	var err error
	s.db, err = postgres.Open(t.Context(), postgres.Config{DSN: migrationstest.DSN(t, migrations.Idempotency())}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.db.Close(context.WithoutCancel(t.Context()))) })
	_, err = s.db.Exec(t.Context(), `create table public.orders (customer text not null)`)
	require.NoError(t, err)
	runner, err := tx.NewRunner(s.db, nil)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("1", bytes.Repeat([]byte("k"), 32))
	require.NoError(t, err)
	s.guard, err = idempotency.New(pgidempotency.New(s.db), runner, keys, nil)
	require.NoError(t, err)
	return s
}

// external guards handlers; route is for routers that do not tell theirs.
func (s *shop) external(route string) func(http.Handler) http.Handler {
	return httpapi.External(s.guard, httpapi.Policy{Route: route})
}

// transactional is a guarded handler that all routers take as it is.
func (s *shop) transactional(route string) http.Handler {
	return httpapi.Transactional(s.guard, httpapi.Policy{Route: route}, func(ctx context.Context, t *tx.Tx, r *httpapi.Request) (*httpapi.Response, error) {
		q, err := postgres.Querier(t)
		if err != nil {
			return nil, err
		}
		customer := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		if _, err := q.Exec(ctx, `insert into public.orders (customer) values ($1)`, customer); err != nil {
			return nil, err
		}
		return httpapi.JSON(http.StatusCreated, map[string]string{"customer": customer})
	})
}

type charge struct {
	Customer string `json:"customer"`
	Amount   int    `json:"amount"`
	Number   int    `json:"number"`
}

func (c charge) location() string { return fmt.Sprintf("/charges/%s/%d", c.Customer, c.Number) }

// charge reads the request's body and calls the provider, which may fail after it has charged.
func (s *shop) charge(r *http.Request, customer string) (charge, error) {
	c := charge{Customer: customer}
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		return charge{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charges[customer]++
	c.Number = s.charges[customer]
	if c.Amount < 0 {
		return charge{}, errors.New("the provider does not answer")
	}
	return c, nil
}

func (s *shop) charged(customer string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.charges[customer]
}

type answer struct {
	*http.Response
	body string
}

func (a answer) code(t *testing.T) string {
	t.Helper()
	var p httpapi.Problem
	require.NoError(t, json.Unmarshal([]byte(a.body), &p), a.body)
	return p.Code
}

type client struct{ *httptest.Server }

func (c client) post(t *testing.T, path, key, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := c.Client().Do(r)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return answer{res, string(b)}
}

// prove is what clients of a guarded service see, whatever router it is built with.
func prove(t *testing.T, with func(*shop) http.Handler) {
	t.Helper()
	s := open(t)
	c := client{httptest.NewServer(httpapi.Wrap(with(s), slog.New(slog.DiscardHandler)))}
	t.Cleanup(c.Close)

	t.Run("a repeat gets the first answer", func(t *testing.T) {
		first := c.post(t, "/charges/ada", "repeat", `{"amount":5}`)
		require.Equal(t, http.StatusCreated, first.StatusCode)
		require.JSONEq(t, `{"customer":"ada","amount":5,"number":1}`, first.body)
		require.Empty(t, first.Header.Get("Idempotent-Replayed"))
		again := c.post(t, "/charges/ada", "repeat", `{"amount":5}`)
		require.Equal(t, http.StatusCreated, again.StatusCode)
		require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
		require.Equal(t, first.body, again.body)
		for _, name := range []string{"Content-Type", "Content-Length", "Location"} {
			require.NotEmpty(t, again.Header.Get(name), name)
			require.Equal(t, first.Header.Get(name), again.Header.Get(name), name)
		}
		require.Equal(t, 1, s.charged("ada"))
	})
	t.Run("another request under the key is refused", func(t *testing.T) {
		require.Equal(t, http.StatusCreated, c.post(t, "/charges/bob", "reused", `{"amount":5}`).StatusCode)
		for _, res := range []answer{c.post(t, "/charges/bob", "reused", `{"amount":6}`), c.post(t, "/charges/eve", "reused", `{"amount":5}`)} {
			require.Equal(t, http.StatusUnprocessableEntity, res.StatusCode)
			require.Equal(t, "IDEMPOTENCY_KEY_REUSED", res.code(t))
		}
		require.Equal(t, 1, s.charged("bob"))
		require.Zero(t, s.charged("eve"))
	})
	t.Run("a key on another route is another operation", func(t *testing.T) {
		require.Equal(t, http.StatusCreated, c.post(t, "/charges/cid", "routes", `{"amount":5}`).StatusCode)
		require.Equal(t, http.StatusCreated, c.post(t, "/orders/cid", "routes", `{"amount":5}`).StatusCode)
	})
	t.Run("a key is required", func(t *testing.T) {
		for _, path := range []string{"/charges/dan", "/orders/dan"} {
			res := c.post(t, path, "", `{"amount":5}`)
			require.Equal(t, http.StatusBadRequest, res.StatusCode)
			require.Equal(t, "IDEMPOTENCY_KEY_REQUIRED", res.code(t))
			require.Equal(t, "IDEMPOTENCY_KEY_INVALID", c.post(t, path, "a b", `{"amount":5}`).code(t))
		}
		require.Zero(t, s.charged("dan"))
	})
	t.Run("a failure is reported once, and never run again", func(t *testing.T) {
		res := c.post(t, "/charges/fay", "fails", `{"amount":-1}`)
		require.Equal(t, http.StatusBadGateway, res.StatusCode)
		require.Equal(t, "IDEMPOTENCY_ABANDONED", c.post(t, "/charges/fay", "fails", `{"amount":-1}`).code(t))
		require.Equal(t, 1, s.charged("fay"))
	})
	t.Run("what cannot be kept whole is refused", func(t *testing.T) {
		for _, path := range []string{"/stream/gus", "/panic/gus"} {
			res := c.post(t, path, "half", `{}`)
			require.Equal(t, http.StatusInternalServerError, res.StatusCode, path)
			require.Equal(t, "INTERNAL", res.code(t), path)
			require.Equal(t, "IDEMPOTENCY_ABANDONED", c.post(t, path, "half", `{}`).code(t), path)
		}
	})
	t.Run("a transaction commits once", func(t *testing.T) {
		first := c.post(t, "/orders/hal", "order", `{}`)
		require.Equal(t, http.StatusCreated, first.StatusCode)
		again := c.post(t, "/orders/hal", "order", `{}`)
		require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
		require.Equal(t, first.body, again.body)
		var orders int
		require.NoError(t, s.db.QueryRow(t.Context(), `select count(*) from public.orders where customer = 'hal'`).Scan(&orders))
		require.Equal(t, 1, orders)
	})
	t.Run("many at once take effect once", func(t *testing.T) {
		var wg sync.WaitGroup
		answers := make([]answer, 50)
		for i := range answers {
			wg.Go(func() { answers[i] = c.post(t, "/charges/ivy", "many", `{"amount":5}`) })
		}
		wg.Wait()
		for _, a := range answers {
			if a.StatusCode != http.StatusCreated {
				require.Equal(t, "IDEMPOTENCY_IN_PROGRESS", a.code(t))
			}
		}
		require.Equal(t, 1, s.charged("ivy"))
	})
}
