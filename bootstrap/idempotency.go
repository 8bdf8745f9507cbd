package bootstrap

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/bootstrap/config"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/lock/schedule"
	"caskeleton.dev/tx"
)

// responses opens where large answers are kept: nil means the database. It is given back by close.
func (s Service) responses(c *config.Config, log *slog.Logger) (store idempotency.ResponseStore, closing func(), err error) {
	if s.Responses == nil {
		return nil, func() {}, nil
	}
	store, err = s.Responses(c)
	if err != nil {
		return nil, nil, fmt.Errorf("the store of large answers: %w", err)
	}
	closer, ok := store.(io.Closer)
	if !ok {
		return store, func() {}, nil
	}
	return store, func() {
		if err := closer.Close(); err != nil {
			log.Warn("store of large answers not closed", "error", fault.Reason(err))
		}
	}, nil
}

// newGuard returns the guard of a configuration.
func newGuard(c *config.Config, s Service, keys idempotency.Keyring, db *postgres.DB, runner *tx.Runner, responses idempotency.ResponseStore, log *slog.Logger) (*idempotency.Guard, error) {
	return idempotency.New(pgidempotency.New(db), runner, keys, &idempotency.Options{
		Lease: c.Idempotency.Lease, Expiry: c.Idempotency.Expiry, InlineLimit: int(c.Idempotency.InlineLimit), Responses: responses, Meter: s.Meter, Logger: log,
	})
}

const reconcileAtMost = 5 * time.Minute

// reconciling has the service settle what was interrupted, in one instance at a time: it asks others about each operation.
func reconciling(app *App, ask idempotency.Reconciler) (schedule.Job, error) {
	every := app.Config.Idempotency.ReaperInterval
	reaper, err := idempotency.NewReaper(app.Idempotency, &idempotency.ReaperOptions{Interval: every, Reconciler: ask})
	return schedule.Job{Name: "idempotency.reconcile", When: schedule.Every(every), AtMost: reconcileAtMost, Run: func(ctx context.Context) error {
		_, err := reaper.Pass(ctx)
		return err
	}}, err
}
