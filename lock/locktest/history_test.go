package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/lock"
)

// TestJudge tries the model on histories of which it is known whether a lock can have had them. A step takes 10 ms, a lease 50.
func TestJudge(t *testing.T) {
	a, b := lock.Token{1}, lock.Token{2}
	call := func(k kind, token lock.Token, step int, e event) event {
		e.kind, e.key, e.token, e.lease = k, "k", token, 50*time.Millisecond
		e.call = time.Duration(step) * 10 * time.Millisecond
		e.ret = e.call + 5*time.Millisecond
		return e
	}
	gets := func(token lock.Token, step int) event { return call(acquire, token, step, event{got: true}) }
	gives := func(token lock.Token, step int, f lock.Freed) event {
		return call(release, token, step, event{freed: f})
	}
	failed := event{failed: true}
	for name, c := range map[string]struct {
		events []event
		ok     bool
	}{
		"one after the other":                   {[]event{gets(a, 0), gives(a, 1, lock.Released), gets(b, 2)}, true},
		"two at once":                           {[]event{gets(a, 0), gets(b, 1), gives(a, 2, lock.Released)}, false},
		"two, and the first was told too early": {[]event{gets(a, 0), gets(b, 1), gives(a, 2, lock.Lost)}, false},
		"two, once the lease had passed":        {[]event{gets(a, 0), gets(b, 6), gives(a, 7, lock.Lost), gives(b, 8, lock.Released)}, true},
		"two, and the first never came back":    {[]event{gets(a, 0), gets(b, 6)}, true},
		"two, and a renewal between":            {[]event{gets(a, 0), call(renew, a, 3, event{got: true}), gets(b, 6), gives(a, 7, lock.Lost)}, false},
		"two, and a renewal that may have been": {[]event{gets(a, 0), call(renew, a, 3, failed), gets(b, 6), gives(a, 7, lock.Lost)}, true},
		"a renewal of what has passed":          {[]event{gets(a, 0), gets(b, 6), call(renew, a, 7, event{got: true})}, false},
		"a renewal refused too early":           {[]event{gets(a, 0), call(renew, a, 1, event{})}, false},
		"ended on purpose":                      {[]event{gets(a, 0), call(expire, lock.Token{}, 1, event{}), gets(b, 2), gives(a, 3, lock.Lost)}, true},
		"perhaps ended on purpose":              {[]event{gets(a, 0), call(expire, lock.Token{}, 1, failed), gets(b, 2), gives(a, 3, lock.Lost)}, true},
		"late and silent":                       {[]event{gets(a, 0), call(expire, lock.Token{}, 1, event{}), gives(a, 2, lock.Released)}, false},
		"late and told":                         {[]event{gets(a, 0), call(expire, lock.Token{}, 1, event{}), gives(a, 2, lock.Expired)}, true},
		"a stale release frees":                 {[]event{gets(a, 0), gets(b, 6), gives(a, 7, lock.Lost), call(look, lock.Token{}, 8, event{})}, false},
		"refused though free":                   {[]event{call(acquire, a, 0, event{})}, false},
		"refused once it was free":              {[]event{gets(a, 0), gives(a, 1, lock.Released), call(acquire, b, 2, event{})}, false},
		"seen held though free":                 {[]event{call(look, lock.Token{}, 0, event{got: true})}, false},
		"seen free though held":                 {[]event{gets(a, 0), call(look, lock.Token{}, 1, event{}), gives(a, 2, lock.Released)}, false},
		"believed while it was so":              {[]event{gets(a, 0), call(believe, a, 1, event{}), gives(a, 2, lock.Released)}, true},
		"believed for too long":                 {[]event{gets(a, 0), gets(b, 6), call(believe, a, 7, event{}), gives(a, 8, lock.Lost)}, false},
		"an answer lost, granted":               {[]event{call(acquire, a, 0, failed), call(acquire, b, 1, event{}), gives(a, 2, lock.Released), gets(b, 3)}, true},
		"an answer lost, not granted":           {[]event{call(acquire, a, 0, failed), gets(b, 1), gives(a, 2, lock.Lost)}, true},
		"a release lost, done":                  {[]event{gets(a, 0), call(release, a, 1, failed), gets(b, 2)}, true},
		"a release lost, not done":              {[]event{gets(a, 0), call(release, a, 1, failed), call(acquire, b, 2, event{}), gives(a, 3, lock.Released)}, true},
		"a release lost, then two":              {[]event{gets(a, 0), call(release, a, 1, failed), gets(b, 2), gives(a, 3, lock.Released)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := suite.Check[int]{Run: func(context.Context, int) { judge(c.events) }}.Err(t.Context(), 0)
			require.Equal(t, c.ok, err == nil, "%v", err)
		})
	}
}
