package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
)

const canary = "c4nary"

// leaky holds the canary wherever an error can hold one.
func leaky(code fault.Code) error {
	driver := fmt.Errorf("%s-detail at postgres://u:%s@%s/db: %w", canary, canary, canary, errors.New("SQLSTATE 23505 "+canary))
	inner := fault.New(fault.DBUniqueViolation, "cause.Inner", driver)
	return fmt.Errorf("%s: %w", canary, errors.Join(errors.New(canary), fault.New(code, "cause.Outer", inner)))
}

func TestNothingOfTheCauseReachesClients(t *testing.T) {
	codes := []fault.Code{fault.RequestInvalid, fault.NotFound, fault.DBUniqueViolation, fault.Internal, fault.DBUnavailable, {}}
	s := serve(t, func(m *httpapi.Mux) {
		for i, code := range codes {
			m.HandleFunc(fmt.Sprintf("GET /%d", i), func(http.ResponseWriter, *http.Request) error { return leaky(code) })
		}
		m.HandleFunc("GET /bare", func(http.ResponseWriter, *http.Request) error { return errors.New(canary) })
		m.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) error { panic(leaky(fault.Internal)) })
	})
	paths := []string{"/bare", "/panic"}
	for i := range codes {
		paths = append(paths, fmt.Sprintf("/%d", i))
	}
	for _, path := range paths {
		a := s.do(t, "GET", path, "")
		require.GreaterOrEqual(t, a.StatusCode, 400)
		require.NotContains(t, a.body+fmt.Sprint(a.Header), canary, path)
	}
	s.Close()

	require.Len(t, s.log.lines(t, "request"), len(paths))
	require.NotContains(t, fmt.Sprint(s.log.lines(t, "request"), s.log.lines(t, "handler panicked")), canary)
	failures := s.log.lines(t, "request failed")
	require.Len(t, failures, len(paths)-1)
	for i, line := range failures {
		if code := "cause.Outer: "; i > 0 { // the first is bare
			require.Contains(t, line["error"], code, "the operator learns nothing")
			require.Contains(t, line["error"], "cause.Inner: DB_UNIQUE_VIOLATION", "nor where it came from")
		}
	}
	require.NotContains(t, s.log.String(), canary)
}

func TestNothingOfTheRequestReachesTheLog(t *testing.T) {
	s := serve(t, func(m *httpapi.Mux) {
		orderRoutes(m)
		m.HandleFunc("POST /panics/{id}", func(_ http.ResponseWriter, r *http.Request) error {
			panic(r.PathValue("id") + r.URL.RawQuery)
		})
	})
	header := []string{
		"Authorization", "Bearer " + canary, "Cookie", "s=" + canary, "If-Match", canary, "Idempotency-Key", canary,
		"User-Agent", canary, "Referer", canary, "X-Request-Id", canary + " with a space",
	}
	json := append([]string{"Content-Type", "application/json"}, header...)
	answers := []answer{
		s.do(t, "GET", "/orders/"+canary+"?q="+canary, "", header...),
		s.do(t, "GET", "/nowhere/"+canary, "", header...),
		s.do(t, "X-"+strings.ToUpper(canary), "/orders", "", header...),
		s.do(t, "POST", "/panics/"+canary+"?q="+canary, canary, json...),
		s.do(t, "POST", "/orders", canary, append([]string{"Content-Type", "text/" + canary}, header...)...),
		s.do(t, "POST", "/orders", canary, json...),
		s.do(t, "POST", "/orders", `{"customer_id":"`+canary+`"} x`, json...),
		s.do(t, "POST", "/orders", `{"customer_id":["`+canary+`"]}`, json...),
		s.do(t, "POST", "/orders", `{"items":[{"quantity":"`+canary+`"}]}`, json...),
		s.do(t, "POST", "/orders", `{"items":[{"sku":"`+canary+`","quantity":-1}]}`, json...),
	}
	for _, a := range answers {
		require.GreaterOrEqual(t, a.StatusCode, 400)
		require.NotContains(t, strings.ToLower(a.body+fmt.Sprint(a.Header)), canary)
	}
	unknown := s.do(t, "POST", "/orders", `{"`+canary+`":1}`, json...)
	require.Equal(t, canary, unknown.problem(t).Errors[0].Path, "the caller may see what it sent")
	require.Equal(t, 1, strings.Count(unknown.body, canary))
	s.Close()
	require.Len(t, s.log.lines(t, "request"), len(answers)+1)
	require.NotContains(t, strings.ToLower(s.log.String()), canary)
}

// A service with SQL of its own, as in a transaction that it wraps, may return what its driver said.
func TestNothingThatTheServerQuotesReachesTheLog(t *testing.T) {
	raw := &pgconn.PgError{
		Code: "22P02", Message: `invalid input syntax for type bigint: "` + canary + `"`, Detail: canary, Where: canary,
		TableName: "orders", ConstraintName: "orders_key",
	}
	failures := map[string]error{
		"bare":    raw,
		"wrapped": fmt.Errorf("placing an order: %w", raw),
		"joined":  errors.Join(errors.New("cannot place"), raw),
		"coded":   fault.New(fault.Internal, "orders.Place", raw),
	}
	s := serve(t, func(m *httpapi.Mux) {
		for name, err := range failures {
			m.HandleFunc("GET /"+name, func(http.ResponseWriter, *http.Request) error { return err })
		}
		m.HandleFunc("GET /diagnosed", func(http.ResponseWriter, *http.Request) error {
			return fmt.Errorf("placing an order: %w", postgres.Diagnose(raw))
		})
	})
	for name := range failures {
		require.NotContains(t, s.do(t, "GET", "/"+name, "").body, canary)
	}
	require.NotContains(t, s.do(t, "GET", "/diagnosed", "").body, canary)
	s.Close()
	require.NotContains(t, s.log.String(), canary)
	lines := s.log.lines(t, "request failed")
	require.Len(t, lines, len(failures)+1)
	for _, line := range lines {
		require.Contains(t, line["error"], "sqlstate=22P02", "the operator learns nothing")
	}
	require.Contains(t, lines[len(failures)]["error"], "table=orders constraint=orders_key", "what names no value stays")
}
