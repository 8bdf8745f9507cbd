package bootstrap

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"go.opentelemetry.io/otel/metric"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/bootstrap/config"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/schedule"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// Service is what a service adds to the kit.
type Service struct {
	Name    string               // in logs, and as PostgreSQL's application_name
	Streams []migrations.Stream  // its own migrations, applied after the kit's
	Meter   metric.MeterProvider // nil measures nothing
	Events  *Events              // nil: it neither records nor consumes any
	Nesting *Nesting             // of transactions inside transactions (InNew); nil: there are none
	// Routes builds what is served, once everything it is given works. GET /livez and GET /readyz are the kit's.
	Routes func(*App) (http.Handler, error)
	// Jobs returns what runs on a schedule, each job once across all instances, beside the kit's own jobs; nil for nothing. Begin their
	// names with the service's, which keeps them apart from another's on the same database.
	Jobs func(*App) []schedule.Job
	// Responses opens where answers over APP_IDEMPOTENCY_INLINE_LIMIT are kept, for all instances alike, such as a shared directory with
	// filesystem.NewResponses; nil keeps them in the database. What is an io.Closer is closed at the end.
	Responses func(*config.Config) (idempotency.ResponseStore, error)
	// Reconciler returns who finds out what interrupted external operations have done. A job asks, once in all instances, after each
	// APP_IDEMPOTENCY_REAPER_INTERVAL; nil leaves them to operators.
	Reconciler func(*App) idempotency.Reconciler
	// Try returns what to print in the dev profile once the service is up at url, such as commands to try it with; nil prints nothing.
	Try func(url string) string
}

// Nesting is how many workers at most hold nested transactions (InNew) at once, and how deep these go: a Depth of 2 is one InNew inside a
// transaction. The start is refused where the pool is too small for them: see [postgres.CheckPool].
type Nesting struct{ Workers, Depth int }

// streams returns all that the database must have. It refuses a configuration that switches off what the service cannot do without.
func (s Service) streams(c *config.Config) ([]migrations.Stream, error) {
	on, err := c.DB.Streams()
	if err != nil {
		return nil, err
	}
	needed := []migrations.Stream{migrations.Idempotency(), migrations.Lock()} // jobs, of which the kit has some of its own, are in the latter
	if s.Events != nil {
		needed = append(needed, migrations.OutboxStorage(), migrations.OutboxPolling(), migrations.Inbox())
	}
	for _, n := range needed {
		if !slices.ContainsFunc(on, func(s migrations.Stream) bool { return s.Name == n.Name }) {
			return nil, fmt.Errorf("APP_MIGRATION_STREAMS leaves out %s, which this service works with; add it", n.Name)
		}
	}
	return append(on, s.Streams...), nil
}

// App is the wired kit, given to a service's Routes, Jobs and Consumers. It is not changed afterwards.
type App struct {
	Config      *config.Config
	Log         *slog.Logger
	DB          *postgres.DB
	Runner      *tx.Runner
	Idempotency *idempotency.Guard
	Outbox      *outbox.Outbox // nil without Events
	Locker      *lock.Locker   // excludes other instances where there are any; its region is the service's name

	schema *migrations.Migrator // verifies as the runtime role
	upkeep []schedule.Job       // the kit's own
	close  func()               // what is neither the database's nor the broker's
}
