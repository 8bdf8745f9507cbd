package fault

import (
	"fmt"
	"log/slog"
)

// Spec is what a code stands for. Once released, a name is never given another meaning and never used again.
type Spec struct {
	Name       string   // UPPER_SNAKE_CASE; what clients and dashboards match on
	Category   Category // one of the ten
	Status     int      // HTTP status
	AlsoStatus int      // a second status, where one code is answered with two; else 0
	Retryable  bool     // the same caller may send the same thing again, as it is
	Client     string   // a sentence that any client may read
	Hint       string   // what an operator does about it; never shown to clients
}

// Code names one kind of failure. It is an error itself, so errors.Is(err, fault.DBDeadlock) asks for it. Codes compare with ==,
// are immutable and safe for concurrent use. The zero Code reads as [Internal].
type Code struct{ spec *Spec }

// NewCode makes a code of a service's own. It panics where the spec breaks a rule, since codes are made once, at package level.
// Two codes are equal only if they come from the same call.
func NewCode(s Spec) Code {
	switch {
	case !validName(s.Name):
		panic(fmt.Sprintf("fault: code name %q is not UPPER_SNAKE_CASE", s.Name))
	case !s.Category.Valid():
		panic(fmt.Sprintf("fault: code %s: category %q is not one of the ten", s.Name, s.Category))
	case s.Status < 400 || s.Status > 599:
		panic(fmt.Sprintf("fault: code %s: status %d is not an HTTP error status (400 to 599)", s.Name, s.Status))
	case s.Client == "" || s.Hint == "":
		panic(fmt.Sprintf("fault: code %s: client text and operator hint are required", s.Name))
	}
	return Code{&s}
}

func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9' || i == 0) && (c != '_' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return s != ""
}

func (c Code) get() *Spec {
	if c.spec == nil {
		return Internal.spec
	}
	return c.spec
}

// Error returns the name.
func (c Code) Error() string { return c.get().Name }

// String returns the name.
func (c Code) String() string { return c.get().Name }

// Category returns the group that c belongs to.
func (c Code) Category() Category { return c.get().Category }

// Status returns the HTTP status that c is answered with.
func (c Code) Status() int { return c.get().Status }

// Retryable reports whether the same caller may send the same thing again.
func (c Code) Retryable() bool { return c.get().Retryable }

// ClientText returns the one sentence about c that clients may read.
func (c Code) ClientText() string { return c.get().Client }

// Hint returns what an operator does about c. It is for logs and consoles.
func (c Code) Hint() string { return c.get().Hint }

// LogValue makes a code log as its name.
func (c Code) LogValue() slog.Value { return slog.StringValue(c.String()) }
