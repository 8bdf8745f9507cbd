package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"caskeleton.dev/fault"
)

// Contribution gives codes to SQLSTATEs. A service contributes those that its own functions and triggers raise.
type Contribution struct {
	Name    string                // who contributes, for the error when two meet
	States  map[string]fault.Code // by exact SQLSTATE, five characters
	Classes map[string]fault.Code // by class, the first two; an exact state beats its class
}

// Classifier finds the code of a SQLSTATE. It is immutable and safe for concurrent use.
type Classifier struct {
	states  map[string]fault.Code
	classes map[string]fault.Code
}

// NewClassifier returns a classifier of the kit's own table and more. A state, or class, that two of them name is an error even where both
// give it the same code: a later change to one would silently be ignored.
func NewClassifier(more ...Contribution) (*Classifier, error) {
	c := &Classifier{states: map[string]fault.Code{}, classes: map[string]fault.Code{}}
	owner := map[string]string{}
	var problems []error
	for _, con := range append([]Contribution{kitStates()}, more...) {
		for _, part := range []struct {
			from, to map[string]fault.Code
			size     int
			kind     string
		}{{con.States, c.states, 5, "SQLSTATE"}, {con.Classes, c.classes, 2, "SQLSTATE class"}} {
			for key, code := range part.from {
				switch first, taken := owner[key]; {
				case len(key) != part.size || strings.Trim(key, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
					problems = append(problems, fmt.Errorf("postgres: contribution %q: %q is not a %s; use %d digits and capital letters", con.Name, key, part.kind, part.size))
				case taken:
					problems = append(problems, fmt.Errorf("postgres: %s %s is contributed by %q and by %q; keep one", part.kind, key, first, con.Name))
				default:
					owner[key], part.to[key] = con.Name, code
				}
			}
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return c, nil
}

// Classify returns the code of the *pgconn.PgError in err's chain, or of another driver's error with a SQLState method. It reports false
// where there is none, or nobody registered its SQLSTATE: such an error has no code.
func (c *Classifier) Classify(err error) (fault.Code, bool) {
	pg, ok := serverError(err)
	if !ok {
		return fault.Code{}, false
	}
	code, ok := c.states[pg.Code]
	if ok {
		return refine(pg, code)
	}
	if len(pg.Code) == 5 {
		code, ok = c.classes[pg.Code[:2]]
	}
	return code, ok
}

// refine tells apart what PostgreSQL reports under one state.
func refine(pg *pgconn.PgError, code fault.Code) (fault.Code, bool) {
	switch pg.Code {
	case pgerrcode.FeatureNotSupported: // "cached plan must not change result type", or anything else that is not implemented
		return code, pg.Routine == routineRevalidateCachedQuery
	case pgerrcode.CheckViolation:
		// No partition for the row: an operator has to add one. A driver that tells no routine may not tell the constraint either.
		if pg.ConstraintName == "" && pg.Routine != "" {
			return fault.DBServerFault, true
		}
	}
	return code, true
}

// Translate returns err as a caller whose context is ctx should see it: with a code where the table has one, and with the text of a
// [Diagnostic]. A failed connect without a SQLSTATE is DB_UNAVAILABLE. Where ctx has ended and the statement with it, that is the
// reason: DB_STATEMENT_TIMEOUT after a deadline, and context.Canceled itself, without a code, after a cancel. Nil, [pgx.ErrNoRows],
// [pgx.ErrTooManyRows] and errors that have a code are returned as they are.
func (c *Classifier) Translate(ctx context.Context, op string, err error) error {
	if err == nil || errors.Is(err, pgx.ErrNoRows) || errors.Is(err, pgx.ErrTooManyRows) || coded(err) {
		return err
	}
	if endedBy(ctx, err) {
		return ended(ctx, op, err)
	}
	if code, ok := c.Classify(err); ok {
		return fault.New(code, op, diagnose(err))
	}
	d := diagnose(err)
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok && d.SQLSTATE == "" {
		return fault.New(fault.DBUnavailable, op, d) // 08001, had anybody answered: docs/adr/0002-connect-failures.md
	}
	return d
}

func coded(err error) bool {
	_, ok := errors.AsType[*fault.Error](err)
	return ok
}

// endedBy reports whether err came of ctx's end. An answer of the server's own, other than "canceled", did not.
func endedBy(ctx context.Context, err error) bool {
	if ctx.Err() == nil {
		return false
	}
	if pg, ok := serverError(err); ok {
		return pg.Code == pgerrcode.QueryCanceled
	}
	return errors.Is(err, ctx.Err()) || errors.Is(err, pgconn.ErrConnClosed)
}

func ended(ctx context.Context, op string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	d := diagnose(err)
	d.err = errors.Join(ctx.Err(), err)
	return fault.New(fault.DBStatementTimeout, op, d)
}
