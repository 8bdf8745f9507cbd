package migrations

import (
	"context"
	"errors"
	"log/slog"

	"caskeleton.dev/fault"
)

// Verify returns nil when the database has what this binary needs, and else what is wrong with each stream: [ErrBehind], [ErrChanged],
// [ErrLate], [ErrMissing], [ErrHistoryLost], and [ErrAhead] under [AheadRefuse]. It only reads, as Status does, so that a readiness
// probe can call it as a role without DDL. A database that is ahead is logged once a version.
func (m *Migrator) Verify(ctx context.Context) error {
	all, err := m.Status(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, st := range all {
		err := m.admit(ctx, st)
		if n := len(st.In(StatePending)); err == nil && n > 0 {
			err = fault.Textf("migrations: stream %s: %w: it has version %d and %d is needed (%d pending): run the migrations, then start again",
				st.Stream, ErrBehind, st.Have, st.Want, n)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// refusals says what each state means for a run, in the order in which it is told, and what to do about it.
var refusals = []struct {
	state State
	err   error
	fix   string
}{
	{StateLost, ErrHistoryLost, "restore the stream's history table from a backup; do not empty it to start over"},
	{StateChanged, ErrChanged, "put the file back as it was applied and make the change in a new file"},
	{StateLate, ErrLate, "give it a version above the latest; it is not applied out of order"},
	{StateMissing, ErrMissing, "put the file back, or deploy the binary that has it"},
}

// admit refuses a stream that must not be run or served, and tells of one that is ahead.
func (m *Migrator) admit(ctx context.Context, st Status) error {
	for _, r := range refusals {
		if bad := st.In(r.state); len(bad) > 0 {
			return fault.Textf("migrations: stream %s: version %d (%s): %w: %s; see docs/runbooks/migration-failure.md", st.Stream, bad[0].Version, bad[0].File, r.err, r.fix)
		}
	}
	if len(st.In(StateAhead)) == 0 {
		return nil
	}
	if m.opts.Ahead == AheadRefuse {
		return fault.Textf("migrations: stream %s: %w: it has version %d and the binary knows %d: deploy the newer binary", st.Stream, ErrAhead, st.Have, st.Want)
	}
	if last, _ := m.reported.Swap(st.Stream, st.Have); last != st.Have {
		m.opts.Logger.WarnContext(ctx, "database is ahead of this binary", slog.String("stream", st.Stream), slog.Int64("have", st.Have), slog.Int64("want", st.Want))
	}
	return nil
}
