package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/ops"
)

// shownRow is all there is of a scope: a record, unless that is gone, and what operators did to it.
type shownRow struct {
	Scope string `json:"scope"`
	*keyedRow
	Actions []actionRow `json:"actions"`
}

func (s *Session) idempotencyShow() *cobra.Command {
	var key idempotency.Key
	var payload bool
	c := &cobra.Command{
		Use: "show [scope]", Short: "Show one record and what operators did to it, by its scope or by the parts of its key",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			byKey := key != (idempotency.Key{})
			if byKey == (len(args) == 1) {
				return Refused("say which record: a scope, or the parts of a key", "give 64 hexadecimal digits, or --tenant, --principal, --method, --route and --key")
			}
			return s.records(cmd, byKey, func(ctx context.Context, o *ops.Idempotency) error {
				var shown ops.Shown
				var err error
				if byKey {
					shown, err = o.ShowKey(ctx, key)
				} else {
					shown, err = o.Show(ctx, args[0])
				}
				if err != nil {
					return err
				}
				row := shownRow{Scope: shown.Scope.String(), Actions: actionRows(shown.Actions)}
				if shown.Entry != nil {
					record := keyedRowOf(*shown.Entry)
					row.keyedRow = &record
				}
				if payload && shown.Entry != nil {
					if err := row.addPayload(ctx, o, shown.Scope); err != nil {
						return err
					}
				}
				return Write(s, cmd, []shownRow{row}, func(w io.Writer) error {
					if err := Table(w, []string{"FIELD", "VALUE"}, s.shownFields(row)); err != nil {
						return err
					}
					return s.actions(w, row.Actions)
				})
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

func (s *Session) shownFields(r shownRow) [][]string {
	if r.keyedRow == nil {
		return [][]string{{"scope", r.Scope}, {"state", "gone: its record is deleted"}}
	}
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
