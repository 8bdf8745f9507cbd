package config

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The list is generated from a file that people write: what the loader assumes of it is checked here.
func TestListIsSound(t *testing.T) {
	envs, paths := map[string]bool{}, map[string]bool{}
	env := regexp.MustCompile(`^[A-Z][A-Z0-9_]*(<[a-zA-Z]+>[A-Z0-9_]*)?$`)
	path := regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z0-9_]+|\.<[a-zA-Z]+>)*$`)
	for _, k := range keys {
		require.False(t, envs[k.Env], "%s is listed twice", k.Env)
		require.False(t, paths[k.Path], "%s is listed twice", k.Path)
		envs[k.Env], paths[k.Path] = true, true
		require.Regexp(t, env, k.Env)
		require.Regexp(t, path, k.Path)
		require.NotEmpty(t, k.Doc, k.Env)
		require.Contains(t, []string{"string", "int", "bool", "duration", "bytes", "enum"}, k.Type, k.Env)
		require.Equal(t, k.Type == "enum", len(k.Values) > 0, k.Env)
		require.Equal(t, k.Pattern, strings.Contains(k.Env, "<") && strings.Contains(k.Path, "<"), k.Env)
		if k.Pattern || k.Secret {
			require.Empty(t, k.Default, "%s can have no default", k.Env)
		}
		if k.Default != "" {
			v, problem, _ := k.parse(k.Default)
			require.Empty(t, problem, k.Env)
			require.Equal(t, k.Default, format(v), "%s: write the default as it is shown", k.Env)
		}
		for _, o := range keys {
			require.False(t, strings.HasPrefix(o.Path, k.Path+"."), "%s is both a value and a section", k.Path)
		}
	}
}

// With patterns that later issues add: the plain key wins, then the longer literal part.
func TestLookupPrefersTheCloserKey(t *testing.T) {
	saved := keys
	t.Cleanup(func() { keys = saved })
	keys = slices.Concat(saved, []Key{
		{Env: "APP_CACHE_<ROLE>_TTL", Path: "cache.<role>.ttl", Pattern: true},
		{Env: "APP_CACHE_<ROLE>_NEGATIVE_TTL", Path: "cache.<role>.negative_ttl", Pattern: true},
		{Env: "APP_CACHE_STAMPEDE_TTL", Path: "cache.stampede_ttl"},
	})
	for name, path := range map[string]string{
		"APP_CACHE_PRODUCTS_TTL":          "cache.products.ttl",
		"APP_CACHE_PRODUCTS_NEGATIVE_TTL": "cache.products.negative_ttl",
		"APP_CACHE_BIG_THINGS_TTL":        "cache.big_things.ttl",
		"APP_CACHE_STAMPEDE_TTL":          "cache.stampede_ttl",
		"APP_CACHE__TTL":                  "",
		"APP_CACHE_a_TTL":                 "",
		"APP_CACHE_X-Y_TTL":               "",
		"APP_IDEMPOTENCY_KEY_2":           "idempotency.keys.2",
		"APP_IDEMPOTENCY_KEY_FILE":        "",
		"APP_IDEMPOTENCY_KEY_V1_FILE":     "",
		"APP_IDEMPOTENCY_KEY_<version>":   "",
		"APP_DB_MAX_CONNS":                "db.max_conns",
	} {
		k, ok := byEnv(name)
		require.Equal(t, path != "", ok, name)
		require.Equal(t, path, k.Path, name)
	}
	k, ok := byPath("cache.products.negative_ttl")
	require.True(t, ok)
	require.Equal(t, "APP_CACHE_PRODUCTS_NEGATIVE_TTL", k.Env)
	_, ok = byPath("cache.Products.ttl")
	require.False(t, ok)
}

func TestBool(t *testing.T) {
	for raw, ok := range map[string]bool{"true": true, "false": true, "True": false, "yes": false, "1": false} {
		v, problem, fix := Key{Type: "bool"}.parse(raw)
		if ok {
			require.Empty(t, problem)
			require.Equal(t, raw, format(v))
			continue
		}
		require.Equal(t, "is neither true nor false", problem, raw)
		require.Equal(t, "write true or false", fix)
	}
}

func TestCompareVersions(t *testing.T) {
	order := []string{"1", "2", "10", "2025_12", "2026_1", "a", "v1", "v2", "v10", "v10a", "v10b2", "v10b10"}
	for i, a := range order {
		for j, b := range order {
			require.Equal(t, sign(i-j), compareVersions(a, b), "%s and %s", a, b)
		}
	}
	require.NotZero(t, compareVersions("v1", "v01"), "two names are never equal")
}

func sign(n int) int { return max(-1, min(1, n)) }
