package tx_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
)

// fn's error says that nothing was committed; a rollback that cannot know takes that back.
func TestARollbackThatMayHaveCommittedIsTold(t *testing.T) {
	r, d := newRunner(t)
	d.fail["rollback"] = fault.New(fault.DBCommitUnknown, "driver.Rollback", nil)
	err := r.InWrite(t.Context(), boom)
	require.ErrorIs(t, err, fault.DBCommitUnknown)
	require.NotErrorIs(t, err, errBoom, "whoever acts on it would believe that it was rolled back")
}
