package postgres_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
)

func TestDurationsAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration][2]int64{
		0:                       {0, 0},
		1:                       {1, 1},
		time.Microsecond:        {1, 1},
		time.Microsecond + 1:    {2, 1},
		time.Millisecond - 1:    {1000, 1},
		time.Millisecond:        {1000, 1},
		1500 * time.Microsecond: {1500, 2},
		time.Hour:               {3_600_000_000, 3_600_000},
		math.MaxInt64:           {9_223_372_036_854_776, 9_223_372_036_855},
		-time.Microsecond - 1:   {-1, 0},
	} {
		require.Equal(t, want, [2]int64{postgres.Micros(d), postgres.Millis(d)}, d.String())
	}
}
