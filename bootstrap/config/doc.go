// Package config reads what a service is told from outside: documented defaults, then one YAML file, then environment variables,
// each over the one before. registry/env-keys.yaml lists every key, with its variable, its YAML path and its default.
//
// [Load] refuses what it does not understand: an unknown key, a value of another type or without its unit, a pair of values that
// cannot work together. It reports every problem at once, as [Problems], each with the key, the place and the fix.
//
// An empty variable, and an empty or null YAML value, count as not set. A secret is given by its variable, by the same name with
// _FILE appended (the path of a file whose content, less one trailing line break, is the value), or by the YAML file. It is held as
// a [Secret], which no formatter, encoder or logger can show.
package config
