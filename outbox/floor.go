package outbox

import "time"

// fullLook is how often a relay looks at all due times, although it claims one full batch after the other.
const fullLook = time.Second

// floor remembers below which due time a relay has left no lane behind, so that full claims in a row do not wade through the dead
// versions of the lanes before. What it may miss, a lane that another relay or an append had locked, is found by the next full look.
type floor struct {
	due    time.Time // by the database's clock
	looked time.Time // at all, by the local clock
}

// next returns where the claim made now starts.
func (f *floor) next(now time.Time) time.Time {
	if now.Sub(f.looked) >= fullLook {
		f.due = time.Time{}
	}
	if f.due.IsZero() {
		f.looked = now
	}
	return f.due
}

// learn takes what a claim returned. Lanes come in the order of their due times, so that a full claim took all below its latest; lanes that
// a bell named come out of order and say nothing.
func (f *floor) learn(claims []Claim, full, rung bool) {
	switch {
	case !full:
		f.due = time.Time{}
	case !rung:
		for _, c := range claims {
			if c.Due.After(f.due) {
				f.due = c.Due
			}
		}
	}
}
