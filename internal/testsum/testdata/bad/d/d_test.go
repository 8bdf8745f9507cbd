package d

import "testing"

func TestAway(t *testing.T) { t.Skip("no server") }
