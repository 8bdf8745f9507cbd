package migrations

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"caskeleton.dev/fault"
)

// State is where one version of a stream stands.
type State string

// The states of a version.
const (
	StateApplied State = "applied"
	StatePending State = "pending" // above every applied version: the next Up applies it
	StateAhead   State = "ahead"   // applied by a newer binary
	StateChanged State = "changed" // applied, and the file is not what it was, or its checksum is not on record
	StateLate    State = "late"    // not applied, and below an applied version
	StateMissing State = "missing" // applied, below the binary's latest, and without a file
	StateLost    State = "lost"    // has a checksum and no place in the history
)

// Status is where one stream stands.
type Status struct {
	Stream string
	Have   int64        // the highest version applied, 0 before the first
	Want   int64        // the highest version of the binary
	Files  []FileStatus // by version
}

// FileStatus is where one version of a stream stands. AppliedAt is the database's time, zero if unknown or not applied.
type FileStatus struct {
	Version   int64
	File      string
	State     State
	AppliedAt time.Time
}

// In returns the versions in a state, in order.
func (s Status) In(state State) []FileStatus {
	return slices.DeleteFunc(slices.Clone(s.Files), func(f FileStatus) bool { return f.State != state })
}

// Status returns where every stream stands. It runs plain SELECTs in a read-only transaction on a connection of its own, and also answers
// when the database is empty. Its errors are about reading: what is wrong with a stream is in the States.
func (m *Migrator) Status(ctx context.Context) ([]Status, error) {
	tx, done, err := snapshot(ctx, m.openToRead)
	if err != nil {
		return nil, err
	}
	defer done()
	out := make([]Status, 0, len(m.streams))
	for _, s := range m.streams {
		h, err := readHistory(ctx, tx, s.Stream)
		if err != nil {
			return nil, err
		}
		out = append(out, compare(s, h))
	}
	return out, nil
}

// snapshot begins a read-only transaction, in which all statements see one state, on a connection of its own. done ends both.
func snapshot(ctx context.Context, open func(context.Context) (*sql.DB, error)) (tx *sql.Tx, done func(), err error) {
	db, err := open(ctx)
	if err != nil {
		return nil, nil, err
	}
	tx, err = db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
	if err != nil {
		_ = db.Close()
		return nil, nil, fault.Textf("migrations: begin: %w", told(err))
	}
	return tx, func() {
		_ = tx.Rollback()
		_ = db.Close()
	}, nil
}

func compare(s source, h history) Status {
	st := Status{Stream: s.Name, Want: s.latest()}
	for v := range h.applied {
		st.Have = max(st.Have, v)
	}
	known := map[int64]bool{}
	for _, f := range s.files {
		known[f.version] = true
		st.Files = append(st.Files, FileStatus{Version: f.version, File: f.name, State: h.state(f, st.Have), AppliedAt: h.marks[f.version].appliedAt})
	}
	for v := range h.applied {
		if !known[v] {
			state := StateMissing
			if v > st.Want {
				state = StateAhead
			}
			st.Files = append(st.Files, FileStatus{Version: v, File: h.marks[v].file, State: state, AppliedAt: h.marks[v].appliedAt})
		}
	}
	for v, m := range h.marks {
		if !known[v] && !h.applied[v] {
			st.Files = append(st.Files, FileStatus{Version: v, File: m.file, State: StateLost, AppliedAt: m.appliedAt})
		}
	}
	slices.SortFunc(st.Files, func(a, b FileStatus) int { return cmp.Compare(a.Version, b.Version) })
	return st
}

func (h history) state(f file, have int64) State {
	mark, marked := h.marks[f.version]
	switch {
	case !h.applied[f.version] && marked:
		return StateLost
	case !h.applied[f.version] && f.version < have:
		return StateLate
	case !h.applied[f.version]:
		return StatePending
	case mark.checksum != f.checksum:
		return StateChanged
	}
	return StateApplied
}
