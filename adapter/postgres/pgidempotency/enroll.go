package pgidempotency

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
)

// enrollSQL has no effect where somebody else has enrolled a version meanwhile: a unique index allows each ordinal once.
const enrollSQL = `insert into caskeleton.idempotency_key (version, check_value, ordinal) values ($1, $2::bytea, $3) on conflict do nothing`

const enrolledSQL = `select version, check_value, ordinal from caskeleton.idempotency_key order by ordinal`

type enrolled struct {
	version string
	check   []byte
	ordinal int
}

// Enroll implements idempotency.Driver. It adds a version at a time, and looks again each time: what it added by may have been old.
func (r *Records) Enroll(ctx context.Context, current string, checks map[string][]byte) error {
	for {
		rows, err := r.db.Query(ctx, enrolledSQL)
		if err != nil {
			return err
		}
		known, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e enrolled, err error) {
			return e, row.Scan(&e.version, &e.check, &e.ordinal)
		})
		if err != nil {
			return err
		}
		missing, err := compare(known, current, checks)
		if err != nil || missing == "" {
			return err
		}
		ordinal := 1
		if len(known) > 0 {
			ordinal += known[len(known)-1].ordinal
		}
		if _, err := r.db.Exec(ctx, enrollSQL, missing, checks[missing], ordinal); err != nil {
			return err
		}
	}
}

// compare returns a version that is to be enrolled next, or "".
func compare(known []enrolled, current string, checks map[string][]byte) (missing string, err error) {
	unknown := maps.Clone(checks)
	for _, k := range known {
		check, ok := checks[k.version]
		switch {
		case !ok:
			return "", fault.Textf("%w: that of version %s, which the keyring has to accept until no record is of it and it is retired", idempotency.ErrOtherSecret, k.version)
		case !bytes.Equal(k.check, check):
			return "", fault.Textf("%w under version %s: a version keeps its secret, and a new secret gets a new one", idempotency.ErrOtherSecret, k.version)
		}
		delete(unknown, k.version)
	}
	_, fresh := unknown[current]
	switch {
	case fresh && len(known) > 0:
		return "", fault.Textf("%w, and not that of version %s: let all instances accept it first, and claim by %s until then",
			idempotency.ErrOtherSecret, current, known[len(known)-1].version)
	case fresh:
		return current, nil
	case len(unknown) == 0:
		return "", nil
	}
	return slices.Min(slices.Collect(maps.Keys(unknown))), nil
}
