package redislock

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/lock"
)

func TestAKeyIsReadBackFromWhatIsPublished(t *testing.T) {
	d := &Driver{prefix: "shop:"}
	k := lock.Key{Region: "DEFAULT", Name: "orders/17"}
	require.Regexp(t, `^shop:[0-9a-f]{64}$`, d.key(k), "nothing of a name may have a meaning to a cluster, as braces do")
	digest, ok := d.digest(d.key(k))
	require.True(t, ok)
	require.Equal(t, k.Digest(), digest)
	for _, strange := range []string{"", "shop:", "other:" + d.key(k)[len("shop:"):], d.key(k) + "00", "shop:" + d.key(k)[len("shop:")+2:] + "zz"} {
		_, ok := d.digest(strange)
		require.False(t, ok, strange)
	}
}

func TestLeasesAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000, maxLease: maxLease.Milliseconds()} {
		require.Equal(t, want, millis(d), d)
	}
}

func TestOpenNeedsRedis(t *testing.T) {
	_, err := Open(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}, Password: "secret"}, nil)
	require.ErrorContains(t, err, "redislock: connect: ")
	require.NotContains(t, err.Error(), "secret")
}
