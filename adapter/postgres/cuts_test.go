package postgres_test

import "testing"

// TestCuts holds the verdict of each cut COMMIT against the database; TestAThousandCuts is the same for longer.
func TestCuts(t *testing.T) { cuts(t, 150) }
