// Package migrationstest gives tests databases that are already migrated.
package migrationstest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres/migrations"
)

// DSN returns the superuser's DSN of a new database at the latest version of core and the streams given, dropped when the test ends. Each set of
// files is migrated once on the server, into a template that is cloned: a test pays for a copy.
func DSN(tb testing.TB, streams ...migrations.Stream) string {
	tb.Helper()
	s := &server{tb: tb, admin: adminDSN(tb)}
	template := "migrated_" + digest(tb, streams)
	if !s.exists(template) {
		s.build(template, streams)
	}
	name := "t_" + rand.Text()
	s.exec(`create database ` + quote(name) + ` template ` + quote(template))
	tb.Cleanup(func() { s.exec(`drop database if exists ` + quote(name) + ` with (force)`) })
	return s.dsn(name)
}

type server struct {
	tb    testing.TB
	admin string
}

// build migrates under a name of its own and renames at the end, so that no test clones half a template. Of two builders one wins.
func (s *server) build(template string, streams []migrations.Stream) {
	s.tb.Helper()
	draft := "draft_" + rand.Text()
	s.exec(`create database ` + quote(draft))
	m, err := migrations.New(s.dsn(draft), streams, nil)
	if err == nil {
		_, err = m.Up(s.tb.Context())
	}
	if err == nil {
		err = s.try(`alter database ` + quote(draft) + ` rename to ` + quote(template))
	}
	if err != nil {
		s.exec(`drop database if exists ` + quote(draft) + ` with (force)`)
	}
	if err != nil && !s.exists(template) {
		s.tb.Fatalf("migrationstest: make the template: %v", err)
	}
}

func (s *server) exists(database string) bool {
	s.tb.Helper()
	var ok bool
	err := s.do(func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, `select exists (select from pg_catalog.pg_database where datname = $1)`, database).Scan(&ok)
	})
	if err != nil {
		s.tb.Fatalf("migrationstest: look for a template: %v", err)
	}
	return ok
}

func (s *server) exec(sql string) {
	s.tb.Helper()
	if err := s.try(sql); err != nil {
		s.tb.Fatalf("migrationstest: %s: %v", sql, err)
	}
}

func (s *server) try(sql string) error {
	return s.do(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, sql)
		return err
	})
}

// do is also for Cleanup, where the test's context has ended.
func (s *server) do(fn func(context.Context, *pgx.Conn) error) error {
	ctx := context.WithoutCancel(s.tb.Context())
	c, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	return fn(ctx, c)
}

func (s *server) dsn(database string) string {
	s.tb.Helper()
	u, err := url.Parse(s.admin)
	if err != nil {
		s.tb.Fatal("migrationstest: the server's DSN is not a URL")
	}
	u.Path = "/" + database
	return u.String()
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func digest(tb testing.TB, streams []migrations.Stream) string {
	tb.Helper()
	h := sha256.New()
	for _, s := range append([]migrations.Stream{migrations.Core()}, streams...) {
		names, err := fs.Glob(s.FS, "*.sql")
		if err != nil {
			tb.Fatalf("migrationstest: stream %s: %v", s.Name, err)
		}
		for _, name := range names {
			body, err := fs.ReadFile(s.FS, name)
			if err != nil {
				tb.Fatalf("migrationstest: stream %s: %v", s.Name, err)
			}
			fmt.Fprintf(h, "%q %q %q %q\n", s.Name, s.Schema, name, body)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
