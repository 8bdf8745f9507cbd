// Package config holds the table of what a service is told from outside; registry/env-keys.yaml is its source.
package config

import "slices"

// Key is one documented setting. A pattern stands for many keys: its Env and its Path each hold one placeholder in angle brackets,
// as in APP_IDEMPOTENCY_KEY_<version> and idempotency.keys.<version>.
type Key struct {
	Env     string   // environment variable
	Path    string   // YAML path, sections joined by dots
	Type    string   // string, int, bool, duration, bytes or enum
	Default string   // as text; empty means not set
	Values  []string // what an enum may be
	Secret  bool     // never shown
	Pattern bool     // Env and Path hold a placeholder
	Doc     string   // one sentence
}

// Keys returns the documented settings, in the order in which they are reported. The caller owns the slice.
func Keys() []Key { return slices.Clone(keys) }
