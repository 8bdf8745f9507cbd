package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgidempotency"
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
}

func keyedRowOf(e idempotency.Entry) keyedRow {
	return keyedRow{
		Scope: e.Scope.String(), State: string(e.State), Tenant: e.Tenant, Route: e.Route, Owner: e.Owner, Attempt: e.Attempt, KeyVersion: e.KeyVersion,
		CreatedAt: e.Created, UpdatedAt: e.Updated, LeaseUntil: e.Lease, LeaseExpired: e.LeaseExpired, KeptUntil: e.Expiry,
	}
}

func idempotencyCommand(s *Session) *cobra.Command {
	group := &cobra.Command{Use: "idempotency", Short: "Look at keyed operations, and settle what was interrupted"}
	group.AddCommand(s.idempotencyShow(), s.idempotencyList(), s.idempotencyReconcile())
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
		keys, err = bootstrap.Keyring(c)
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
	o, err := ops.NewIdempotency(guard, log)
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

func (s *Session) idempotencyShow() *cobra.Command {
	var key idempotency.Key
	var payload bool
	c := &cobra.Command{
		Use: "show [scope]", Short: "Show one record, by its scope or by the parts of its key",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			byKey := key != (idempotency.Key{})
			if byKey == (len(args) == 1) {
				return Refused("say which record: a scope, or the parts of a key", "give 64 hexadecimal digits, or --tenant, --principal, --method, --route and --key")
			}
			return s.records(cmd, byKey, func(ctx context.Context, o *ops.Idempotency) error {
				var e idempotency.Entry
				var err error
				if byKey {
					e, err = o.ShowKey(ctx, key)
				} else {
					e, err = o.Show(ctx, args[0])
				}
				if err != nil {
					return err
				}
				row := keyedRowOf(e)
				if payload {
					if err := row.addPayload(ctx, o, e.Scope); err != nil {
						return err
					}
				}
				return Write(s, cmd, []keyedRow{row}, func(w io.Writer) error { return Table(w, []string{"FIELD", "VALUE"}, s.keyedFields(row)) })
			})
		},
	}
	f := c.Flags()
	f.StringVar(&key.Tenant, "tenant", "", "tenant of the key, if there was one")
	f.StringVar(&key.Principal, "principal", "", "who sent the request, if that was known")
	f.StringVar(&key.Method, "method", "", "method of the request, as POST")
	f.StringVar(&key.Route, "route", "", "pattern that the request matched, as /orders/{id}/cancel")
	f.StringVar(&key.Client, "key", "", "Idempotency-Key that the client sent")
	f.BoolVar(&payload, "payload", false, "show the stored answer too, which may hold personal data")
	return c
}

// addPayload adds the stored answer, if there is one.
func (r *keyedRow) addPayload(ctx context.Context, o *ops.Idempotency, scope idempotency.Scope) error {
	payload, err := o.Answer(ctx, scope)
	switch {
	case errors.Is(err, idempotency.ErrNoRecord):
	case err != nil:
		return err
	case utf8.Valid(payload):
		text := string(payload)
		r.Payload = &text
	default:
		r.Base64 = payload
	}
	return nil
}

func (s *Session) keyedFields(r keyedRow) [][]string {
	lease := s.Time(r.LeaseUntil)
	if r.LeaseExpired {
		lease += ", expired"
	}
	fields := [][]string{
		{"scope", r.Scope},
		{"state", r.State},
		{"tenant", r.Tenant},
		{"route", r.Route},
		{"owner", r.Owner},
		{"attempt", fmt.Sprint(r.Attempt)},
		{"key version", r.KeyVersion},
		{"created", s.Time(r.CreatedAt)},
		{"updated", s.Time(r.UpdatedAt)},
		{"lease", lease},
		{"kept until", s.Time(r.KeptUntil)},
	}
	switch {
	case r.Payload != nil:
		fields = append(fields, []string{"payload", *r.Payload})
	case r.Base64 != nil:
		fields = append(fields, []string{"payload", strconv.QuoteToASCII(string(r.Base64))})
	}
	return fields
}

func (s *Session) idempotencyList() *cobra.Command {
	var limit int
	c := &cobra.Command{Use: "list", Short: "List interrupted operations, the oldest first", Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return s.records(cmd, false, func(ctx context.Context, o *ops.Idempotency) error {
			entries, err := o.Abandoned(ctx, idempotency.Cursor{}, limit)
			if err != nil {
				return err
			}
			rows := make([]keyedRow, 0, len(entries))
			cells := make([][]string, 0, len(entries))
			for _, e := range entries {
				rows = append(rows, keyedRowOf(e))
				cells = append(cells, []string{e.Scope.String(), e.Tenant, e.Route, e.Owner, s.Time(e.Created), s.Time(e.Updated)})
			}
			return Write(s, cmd, rows, func(w io.Writer) error {
				if len(cells) == 0 {
					_, err := fmt.Fprintln(w, "nothing is abandoned")
					return err
				}
				if err := Table(w, []string{"SCOPE", "TENANT", "ROUTE", "OWNER", "CREATED", "ABANDONED"}, cells); err != nil || len(cells) < limit {
					return err
				}
				_, err := fmt.Fprintf(w, "there may be more than these %d: see --limit\n", limit)
				return err
			})
		})
	}}
	c.Flags().IntVar(&limit, "limit", 100, fmt.Sprintf("how many at most, 1 to %d", ops.MaxList))
	return c
}

func (s *Session) idempotencyReconcile() *cobra.Command {
	verdict := choice{"", []string{string(ops.TookEffect), string(ops.Refused), string(ops.NoEffect)}}
	var act ops.Act
	var a answerFile
	c := &cobra.Command{
		Use: "reconcile scope", Short: "Say what an interrupted operation has done, after looking where it had its effects",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Refused("say which record: its scope", "give 64 hexadecimal digits, as "+cmd.Parent().CommandPath()+" list has them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := a.read()
			if err != nil {
				return refusal(err, false)
			}
			return s.records(cmd, false, func(ctx context.Context, o *ops.Idempotency) error {
				e, err := o.Reconcile(ctx, args[0], ops.Verdict(verdict.value), answer, act)
				if err != nil {
					return err
				}
				type settled struct {
					Scope   string `json:"scope"`
					Route   string `json:"route"`
					Verdict string `json:"verdict"`
				}
				return Write(s, cmd, []settled{{e.Scope.String(), e.Route, verdict.value}}, func(w io.Writer) error {
					then := "repeats get the answer"
					if verdict.value == string(ops.NoEffect) {
						then = "a repeat runs it"
					}
					_, err := fmt.Fprintf(w, "%s is settled as %s: %s\n", printable(e.Route), verdict.value, then)
					return err
				})
			})
		},
	}
	f := c.Flags()
	f.Var(&verdict, "verdict", "what the operation has done")
	f.StringVar(&a.path, "answer", "", "file with the answer that repeats get: JSON of the value, or, with --status, the body of the response")
	f.IntVar(&a.status, "status", 0, "of the HTTP response, for a route of adapter/httpapi")
	f.StringVar(&a.contentType, "content-type", "application/json", "of the HTTP response")
	f.StringVar(&act.Operator, "operator", "", "who says so")
	f.StringVar(&act.Reason, "reason", "", "why, for the log")
	if err := c.RegisterFlagCompletionFunc("verdict", cobra.FixedCompletions(verdict.allowed, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // a flag that was just made
	}
	return c
}

// answerFile is where the answer of an operation is, and what kind it is.
type answerFile struct {
	path        string
	status      int // 0: a value, and no HTTP response
	contentType string
}

// read returns the answer as it is stored, nil where there is none.
func (a answerFile) read() (ops.Stored, error) {
	if a.path == "" && a.status == 0 {
		return nil, nil
	}
	var body []byte
	if a.path != "" {
		var err error
		if body, err = os.ReadFile(a.path); err != nil {
			return nil, &ops.InvalidError{Field: "answer", Problem: "cannot be read: " + err.Error(), Fix: "give the name of a file"}
		}
	}
	if a.status == 0 {
		return ops.JSONAnswer(body)
	}
	r := httpapi.Response{Status: a.status, Body: body}
	if len(body) > 0 {
		r.Header = http.Header{"Content-Type": {a.contentType}}
	}
	stored, err := r.MarshalBinary()
	if err != nil {
		return nil, &ops.InvalidError{Field: "status", Problem: "does not make a response: " + err.Error(), Fix: "give the status and the body that the client would have got"}
	}
	return stored, nil
}
