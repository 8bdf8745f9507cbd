package routertest

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"
)

// echoGuard is a guard as echo's middleware. echo renders the error that a handler returns after all middleware, which is too late: what
// the handler answers is stored when it returns. So it is rendered here; echo.WrapMiddleware would store an empty 200.
func echoGuard(guard func(http.Handler) http.Handler) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			response := c.Response()
			guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.SetRequest(r)
				c.SetResponse(echo.NewResponse(w, c.Echo()))
				if err := next(c); err != nil {
					c.Error(err)
				}
			})).ServeHTTP(response, c.Request())
			c.SetResponse(response)
			return nil
		}
	}
}

// echo does not tell net/http its pattern, so that the policy does.
func withEcho(s *shop) http.Handler {
	e := echo.New()
	guarded := func(route string) echo.MiddlewareFunc { return echoGuard(s.external(route)) }
	e.POST("/charges/:customer", func(c echo.Context) error {
		charge, err := s.charge(c.Request(), c.Param("customer"))
		if err != nil {
			return echo.NewHTTPError(http.StatusBadGateway, "no")
		}
		c.Response().Header().Set("Location", charge.location())
		return c.JSON(http.StatusCreated, charge)
	}, guarded("/charges/:customer"))
	e.POST("/stream/:customer", func(c echo.Context) error {
		_, err := c.Response().Write([]byte("half"))
		c.Response().Flush()
		return err
	}, guarded("/stream/:customer"))
	e.POST("/panic/:customer", func(c echo.Context) error {
		_ = c.String(http.StatusOK, "half")
		panic("canary")
	}, guarded("/panic/:customer"))
	e.POST("/orders/:customer", echo.WrapHandler(s.transactional("/orders/:customer")))
	return e
}

func TestEcho(t *testing.T) { prove(t, withEcho) }
