package pgoutbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/outbox"
)

func TestPublishedEndsAtTheHeadOfTheLane(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, mode)
			payloads := func() (all []string) {
				events, err := f.driver.Published(t.Context(), lane("a"), 10)
				require.NoError(t, err)
				for i, e := range events {
					require.Equal(t, int64(i+1), e.Sequence)
					require.Equal(t, "order.placed", e.Type)
					require.Equal(t, lane("a"), e.Lane())
					all = append(all, string(e.Payload))
				}
				return all
			}
			require.Empty(t, payloads())
			f.commit(t, event("a", "1"), event("a", "2"), event("a", "3"), event("b", "other"))
			require.Empty(t, payloads(), "recorded, and not delivered")

			settle := func(acked int) {
				claims, err := f.driver.Claim(t.Context(), outbox.ClaimRequest{Owner: "o", Limit: 1, RunSize: 2, Lease: time.Minute, Rung: []outbox.Lane{lane("a")}})
				require.NoError(t, err)
				require.Len(t, claims, 1)
				lost, err := f.driver.Settle(t.Context(), []outbox.Settlement{{Claim: claims[0], Acked: acked}})
				require.NoError(t, err)
				require.Empty(t, lost)
			}
			settle(2)
			require.Equal(t, []string{"1", "2"}, payloads())
			settle(1)
			require.Equal(t, []string{"1", "2", "3"}, payloads(), "without a lane all of it is delivered")

			some, err := f.driver.Published(t.Context(), lane("a"), 2)
			require.NoError(t, err)
			require.Len(t, some, 2)
		})
	}
}
