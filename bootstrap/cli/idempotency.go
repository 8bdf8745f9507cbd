package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgaudit"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/audit"
	"caskeleton.dev/bootstrap"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/ops"
	"caskeleton.dev/tx"
)

// keyedRow is a record of a keyed operation, as it is shown.
type keyedRow struct {
	Scope        string    `json:"scope"`
	State        string    `json:"state"`
	Tenant       string    `json:"tenant"`
	Route        string    `json:"route"`
	Owner        string    `json:"owner"`
	Attempt      int32     `json:"attempt"`
	KeyVersion   string    `json:"key_version"`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
	LeaseUntil   time.Time `json:"lease_until"`
	LeaseExpired bool      `json:"lease_expired"`
	KeptUntil    time.Time `json:"kept_until"`
	Payload      *string   `json:"payload,omitempty"`
	Base64       []byte    `json:"payload_base64,omitempty"` // where it is no text
	Next         string    `json:"next,omitempty"`           // in the last row of a page: where the next one begins
}

func keyedRowOf(e idempotency.Entry) keyedRow {
	return keyedRow{
		Scope: e.Scope.String(), State: string(e.State), Tenant: e.Tenant, Route: e.Route, Owner: e.Owner, Attempt: e.Attempt, KeyVersion: e.KeyVersion,
		CreatedAt: e.Created, UpdatedAt: e.Updated, LeaseUntil: e.Lease, LeaseExpired: e.LeaseExpired, KeptUntil: e.Expiry,
	}
}

func idempotencyCommand(s *Session) *cobra.Command {
	group := &cobra.Command{Use: "idempotency", Short: "Look at keyed operations, and settle what was interrupted"}
	group.AddCommand(s.idempotencyShow(), s.idempotencyList(), s.idempotencyReconcile(), s.idempotencyRetire())
	return group
}

// records runs fn on the records of the configured database. Only what is found by its key needs the secrets that scopes are made with.
func (s *Session) records(cmd *cobra.Command, byKey bool, fn func(ctx context.Context, o *ops.Idempotency) error) (err error) {
	c, err := s.Config()
	if err != nil {
		return err
	}
	if !c.DB.URL.IsSet() {
		return Refused("no database to look into", "set DATABASE_URL")
	}
	keys, err := idempotency.NewKeyring("none", []byte(rand.Text()+rand.Text()))
	if byKey {
		keys, err = bootstrap.FindKeyring(c)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Refused("no secret to find a key by", "set the APP_IDEMPOTENCY_KEY_<version> of the service, or APP_DATA_DIR to that of a service in the dev profile; or give the scope")
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	pool := c.DB.Pool()
	pool.DSN, pool.ApplicationName = c.DB.URL.Reveal(), cmd.Root().Name()
	db, err := postgres.Open(cmd.Context(), pool, &postgres.Options{Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(cmd.Context()))) }()
	runner, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: log})
	if err != nil {
		return err
	}
	guard, err := idempotency.New(pgidempotency.New(db), runner, keys, &idempotency.Options{InlineLimit: int(c.Idempotency.InlineLimit), Logger: log})
	if err != nil {
		return err
	}
	trail, err := audit.NewTrail(pgaudit.NewActions(db))
	if err != nil {
		return err
	}
	o, err := ops.NewIdempotency(guard, trail, log)
	if err != nil {
		return err
	}
	return refusal(fn(cmd.Context(), o), byKey)
}

// refusal makes of an error that came before any change one that says what to do.
func refusal(err error, byKey bool) error {
	if bad, ok := errors.AsType[*ops.InvalidError](err); ok {
		return Refused(bad.Error(), bad.Fix)
	}
	switch {
	case errors.Is(err, idempotency.ErrNoRecord) && byKey:
		return Refused("there is no record of this key", "compare each part with the request, and APP_IDEMPOTENCY_KEY_<version> with that of the service; what has expired is deleted")
	case errors.Is(err, idempotency.ErrNoRecord):
		return Refused("there is no record of this scope", "see idempotency list; what had no effect, or has expired, is deleted")
	case errors.Is(err, idempotency.ErrStale):
		return Refused("the record has changed meanwhile; nothing was done", "look at it again: idempotency show")
	}
	return err
}
