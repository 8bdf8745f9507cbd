package audit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/audit"
)

func TestAStampIsSetOnceAndMovesForward(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := audit.New("ann", at)
	require.Equal(t, audit.Stamp{CreatedAt: at, CreatedBy: "ann", UpdatedAt: at, UpdatedBy: "ann"}, s)
	later := at.Add(time.Second)
	changed := s.Updated("bob", later)
	require.Equal(t, audit.Stamp{CreatedAt: at, CreatedBy: "ann", UpdatedAt: later, UpdatedBy: "bob"}, changed)
	require.Equal(t, audit.Stamp{CreatedAt: at, CreatedBy: "ann", UpdatedAt: later, UpdatedBy: "cy"}, changed.Updated("cy", at), "a transaction that began earlier")
	require.Equal(t, "ann", s.UpdatedBy, "a stamp is a value")
}

func ExampleStamp_Updated() {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s := audit.New("ann", noon).Updated("bob", noon.Add(time.Hour))
	fmt.Println(s.CreatedBy, s.CreatedAt.Format(time.TimeOnly), s.UpdatedBy, s.UpdatedAt.Format(time.TimeOnly))
	// Output: ann 12:00:00 bob 13:00:00
}
