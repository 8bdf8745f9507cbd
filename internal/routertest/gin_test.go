package routertest

import (
	"bufio"
	"net"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
)

// ginGuard is a guard as gin's middleware.
func ginGuard(guard func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		outer := c.Writer
		guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.Request, c.Writer = r, &ginWriter{ResponseWriter: outer, w: w, status: http.StatusOK, size: -1}
			c.Next()
			c.Writer.WriteHeaderNow()
		})).ServeHTTP(outer, c.Request)
		c.Writer = outer
		c.Abort() // the handlers of the route have run, or must not
	}
}

// ginWriter is gin's writer on the guard's: gin has no way to make one of its own.
type ginWriter struct {
	gin.ResponseWriter // what is left of the outer one: nothing that writes

	w      http.ResponseWriter
	status int
	size   int // -1 until the header is written
}

func (g *ginWriter) Unwrap() http.ResponseWriter { return g.w }
func (g *ginWriter) Header() http.Header         { return g.w.Header() }
func (g *ginWriter) WriteHeader(status int)      { g.status = status }
func (g *ginWriter) Status() int                 { return g.status }
func (g *ginWriter) Size() int                   { return g.size }
func (g *ginWriter) Written() bool               { return g.size >= 0 }

func (g *ginWriter) WriteHeaderNow() {
	if !g.Written() {
		g.size = 0
		g.w.WriteHeader(g.status)
	}
}

func (g *ginWriter) Write(b []byte) (int, error) {
	g.WriteHeaderNow()
	n, err := g.w.Write(b)
	g.size += n
	return n, err
}

func (g *ginWriter) WriteString(s string) (int, error) { return g.Write([]byte(s)) }

func (g *ginWriter) Flush() {
	g.WriteHeaderNow()
	_ = http.NewResponseController(g.w).Flush()
}

func (g *ginWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(g.w).Hijack()
}

// gin does not tell net/http its pattern, so that the policy does.
func withGin(s *shop) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	guarded := func(route string) gin.HandlerFunc { return ginGuard(s.external(route)) }
	e.POST("/charges/:customer", guarded("/charges/:customer"), func(c *gin.Context) {
		charge, err := s.charge(c.Request, c.Param("customer"))
		if err != nil {
			c.String(http.StatusBadGateway, "no")
			return
		}
		c.Header("Location", charge.location())
		c.JSON(http.StatusCreated, charge)
	})
	e.POST("/stream/:customer", guarded("/stream/:customer"), func(c *gin.Context) {
		c.String(http.StatusOK, "half")
		c.Writer.Flush()
	})
	e.POST("/panic/:customer", guarded("/panic/:customer"), func(c *gin.Context) {
		c.String(http.StatusOK, "half")
		panic("canary")
	})
	e.POST("/orders/:customer", gin.WrapH(s.transactional("/orders/:customer")))
	return e
}

func TestGin(t *testing.T) { prove(t, withGin) }
