// Package migrationstest gives tests databases that are already migrated.
package migrationstest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgtest"
)

// DSN returns the address of a new database at the latest version of core and the streams given, which is this test's alone and dropped
// when it ends. Each set of files is migrated once on the server, into a template that is cloned: a test pays for a copy. A template
// serves for a week, since a migration may make what depends on the week, such as partitions.
func DSN(tb testing.TB, streams ...migrations.Stream) string {
	tb.Helper()
	return Template(tb, streams...).DSN(tb)
}

// Template returns what DSN clones, for a test that fills it further. Its Name changes with the files.
func Template(tb testing.TB, streams ...migrations.Stream) pgtest.Template {
	tb.Helper()
	name, err := digest(streams)
	require.NoError(tb, err)
	return pgtest.Template{Name: "migrations " + name, Prepare: func(ctx context.Context, dsn string) error {
		m, err := migrations.New(dsn, streams, &migrations.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		_, err = m.Up(ctx)
		return err
	}}
}

func digest(streams []migrations.Stream) (string, error) {
	h := sha256.New()
	year, week := time.Now().UTC().ISOWeek()
	_, _ = fmt.Fprintf(h, "%d %d\n", year, week)
	for _, s := range append([]migrations.Stream{migrations.Core()}, streams...) {
		names, err := fs.Glob(s.FS, "*.sql")
		if err != nil {
			return "", fmt.Errorf("migrationstest: stream %s: %w", s.Name, err)
		}
		for _, name := range names {
			body, err := fs.ReadFile(s.FS, name)
			if err != nil {
				return "", fmt.Errorf("migrationstest: stream %s: %w", s.Name, err)
			}
			_, _ = fmt.Fprintf(h, "%q %q %q %q\n", s.Name, s.Schema, name, body)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12]), nil
}
