package config

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// hidden stands for a secret wherever one would be shown.
const hidden = "[hidden]"

// Secret is a value that must reach no log, error or screen. The zero Secret is not set. Secrets are immutable and safe for
// concurrent use.
type Secret struct {
	value *string // a pointer, since fmt prints what an unexported field of another struct holds without asking its methods
}

// NewSecret returns a Secret that holds value; an empty value is not set.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{&value}
}

// Reveal returns the value, for the one call that needs it. It is empty where the secret is not set.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsSet reports whether there is a value.
func (s Secret) IsSet() bool { return s.value != nil }

// Equal compares in a time that does not depend on the content.
func (s Secret) Equal(o Secret) bool {
	return s.IsSet() == o.IsSet() && subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(o.Reveal())) == 1
}

// String returns "[hidden]", and "" where the secret is not set.
func (s Secret) String() string {
	if s.IsSet() {
		return hidden
	}
	return ""
}

// GoString returns what String does.
func (s Secret) GoString() string { return s.String() }

// Format writes what String returns, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText covers encoding/json, YAML and every encoder that knows text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue makes a secret log as what String returns.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
