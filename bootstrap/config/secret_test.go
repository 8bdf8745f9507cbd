package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/bootstrap/config"
)

// renderings is every way in which a value of the package could reach a screen or a log.
func renderings(t *testing.T, v any) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10v", "%T"} {
		out[verb] = fmt.Sprintf(verb, v)
	}
	j, err := json.Marshal(v)
	require.NoError(t, err)
	out["json"] = string(j)
	y, err := yaml.Marshal(v)
	require.NoError(t, err)
	out["yaml"] = string(y)
	var text, structured bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("m", "v", v)
	slog.New(slog.NewJSONHandler(&structured, nil)).Info("m", "v", v)
	out["slog text"], out["slog json"] = text.String(), structured.String()
	return out
}

func TestSecretHidesItself(t *testing.T) {
	s := config.NewSecret(secretA)
	type exported struct{ S config.Secret }
	type unexported struct{ s config.Secret }
	for name, v := range map[string]any{
		"value": s, "pointer": &s, "field": exported{s}, "unexported field": unexported{s}, "map": map[string]config.Secret{"k": s},
		"slice": []config.Secret{s}, "error": fmt.Errorf("wrapped %v", s), "nested": &exported{s},
	} {
		for how, text := range renderings(t, v) {
			require.NotContains(t, text, "canary", "%s by %s", name, how)
			require.NotContains(t, text, fmt.Sprintf("%x", "canary"), "%s by %s", name, how)
		}
	}
	require.Equal(t, secretA, s.Reveal())
	require.Equal(t, "[hidden]", s.String())
	require.Empty(t, config.Secret{}.String(), "what is not set is shown as such")
}

func TestSecretEqual(t *testing.T) {
	require.True(t, config.NewSecret(secretA).Equal(config.NewSecret(secretA)))
	require.False(t, config.NewSecret(secretA).Equal(config.NewSecret(secretB)))
	require.False(t, config.NewSecret(secretA).Equal(config.Secret{}))
	require.True(t, config.NewSecret("").Equal(config.Secret{}))
	require.False(t, config.NewSecret("").IsSet())
}

// A configuration and the report of its problems are shown; what they were made from must not be seen in them, wherever it was given.
func TestNoSecretIsRendered(t *testing.T) {
	dsn := "postgres://u:" + secretA + "@h/d"
	held := writeFile(t, "dsn", dsn+"\n")
	good := map[string]config.Source{
		"variables":   {Environ: []string{"DATABASE_URL=" + dsn, "APP_MIGRATION_DSN=" + dsn, "APP_IDEMPOTENCY_KEY_V1=" + secretB}},
		"secret file": {Environ: []string{"DATABASE_URL_FILE=" + held}},
		"yaml":        {File: writeFile(t, "app.yaml", "db:\n  url: "+dsn+"\nidempotency:\n  keys:\n    v1: "+secretB+"\n")},
	}
	for name, src := range good {
		c, err := config.Load(src)
		require.NoError(t, err, name)
		require.Equal(t, dsn, c.DB.URL.Reveal(), name)
		for how, text := range renderings(t, c) {
			require.NotContains(t, text, "canary", "%s by %s", name, how)
		}
		for how, text := range renderings(t, c.Settings()) {
			require.NotContains(t, text, "canary", "%s by %s", name, how)
		}
		require.Contains(t, fmt.Sprint(c.Settings()), "[hidden]", name)
	}
	bad := map[string]config.Source{
		"not a DSN":         {Environ: []string{"DATABASE_URL=mysql://u:" + secretA + "@h/d"}},
		"too short":         {Environ: []string{"APP_IDEMPOTENCY_KEY_V1=canary"}},
		"misspelt variable": {Environ: []string{"APP_IDEMPOTENCY_KEYS_V1=" + secretA}},
		"misspelt path":     {File: writeFile(t, "a.yaml", "idempotency:\n  key:\n    v1: "+secretA+"\n")},
		"value as path":     {Environ: []string{"DATABASE_URL_FILE=" + dsn}},
		"value as section":  {File: writeFile(t, "b.yaml", "db: "+dsn+"\n")},
		"list":              {File: writeFile(t, "c.yaml", "db:\n  url: ["+secretA+"]\n")},
		"duplicate":         {File: writeFile(t, "d.yaml", "db:\n  url: "+dsn+"\n  url: "+dsn+"\n")},
		"not YAML":          {File: writeFile(t, "e.yaml", "db:\n  url: \""+dsn+"\n")},
		"both":              {Environ: []string{"DATABASE_URL=" + dsn, "DATABASE_URL_FILE=" + held}},
		"other problem":     {Environ: []string{"DATABASE_URL=" + dsn, "APP_DB_LOCK_TIMEOUT=10"}},
	}
	for name, src := range bad {
		ps := problemsOf(t, src)
		for how, text := range renderings(t, ps) {
			require.NotContains(t, text, "canary", "%s by %s", name, how)
		}
	}
}

func TestSecretFile(t *testing.T) {
	for name, tt := range map[string]struct{ content, want string }{
		"no line break": {secretA, secretA},
		"line break":    {secretA + "\n", secretA},
		"windows":       {secretA + "\r\n", secretA},
		"only the last": {secretA + "\n\n", secretA + "\n"},
		"spaces matter": {" " + secretA + " \n", " " + secretA + " "},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := config.Load(config.Source{Environ: []string{"APP_IDEMPOTENCY_KEY_V1_FILE=" + writeFile(t, "key", tt.content)}})
			require.NoError(t, err)
			require.Equal(t, tt.want, c.Idempotency.Keys["v1"].Reveal())
		})
	}
}

func TestSecretFileIsRefused(t *testing.T) {
	const fix = "give the path of a file that this user can read and that holds the secret alone"
	for name, tt := range map[string]struct{ path, problem string }{
		"missing":   {t.TempDir() + "/missing", "no such file or directory"},
		"directory": {t.TempDir(), "is a directory"},
		"empty":     {writeFile(t, "empty", ""), "it is empty"},
		"blank":     {writeFile(t, "blank", "\n"), "it is empty"},
		"large":     {writeFile(t, "large", strings.Repeat("x", 64<<10+1)), "it is over 64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			ps := problemsOf(t, config.Source{Environ: []string{"APP_PROFILE=prod", "APP_IDEMPOTENCY_KEY_V1=" + secretA, "DATABASE_URL_FILE=" + tt.path}})
			require.Equal(t, config.Problems{{
				Key: "DATABASE_URL_FILE", Path: "db.url", Where: "secret file", Problem: "names a file that cannot be used: " + tt.problem, Fix: fix,
			}}, ps, "and not also that DATABASE_URL is missing")
		})
	}
}

func TestSecretIsGivenTwice(t *testing.T) {
	ps := problemsOf(t, config.Source{Environ: []string{"DATABASE_URL=postgres://h/d", "DATABASE_URL_FILE=" + writeFile(t, "dsn", "postgres://h/d")}})
	require.Equal(t, config.Problems{{Key: "DATABASE_URL_FILE", Path: "db.url", Where: "secret file", Problem: "is set, and so is DATABASE_URL", Fix: "keep one of the two"}}, ps)
}

func TestProblemsAreFoundByType(t *testing.T) {
	_, err := config.Load(config.Source{Environ: []string{"APP_X=1"}})
	var ps config.Problems
	require.ErrorAs(t, errors.Join(err), &ps)
}
