package migrations

import (
	"io/fs"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// breaking finds what the release before this one could not live with, on tables that it knows: instances of both run side by side.
var breaking = regexp.MustCompile(`\b(drop (table|column|schema|view|function|type)|rename|alter( column)? [a-z_]+( set data)? type|truncate (table )?(only )?[a-z_]+\.|delete from|add( column)? [a-z_]+ [a-z ]+ not null( |,|$)(?:[^,]*\bdefault\b)?)`)

// breaks returns what of a later file would break the release before, "" if nothing would.
func breaks(script string) string {
	for _, s := range splitStatements(script) {
		for _, m := range breaking.FindAllString(s, -1) {
			if !regexp.MustCompile(`\bdefault\b`).MatchString(m) {
				return m
			}
		}
	}
	return ""
}

func TestFilesOnlyAdd(t *testing.T) {
	t.Parallel()
	for _, s := range All() {
		names, err := fs.Glob(s.FS, "*.sql")
		require.NoError(t, err)
		for _, name := range names {
			body, err := fs.ReadFile(s.FS, name)
			require.NoError(t, err)
			require.Empty(t, breaks(string(body)), "%s of stream %s would break instances of the release before, which run beside this one: add instead, and take away two releases later", name, s.Name)
		}
	}
}

func TestBreaks(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		`drop table caskeleton.a`:                                                true,
		`alter table caskeleton.a drop column b`:                                 true,
		`alter table caskeleton.a rename column b to c`:                          true,
		`alter table caskeleton.a rename to b`:                                   true,
		`alter table caskeleton.a alter column b type bigint`:                    true,
		`alter table caskeleton.a alter b set data type bigint`:                  true,
		`alter table caskeleton.a add column b int not null`:                     true,
		`alter table caskeleton.a add b text not null, add c int`:                true,
		`truncate caskeleton.a`:                                                  true,
		`truncate table only caskeleton.a`:                                       true,
		`create trigger t before truncate on caskeleton.a execute function f()`:  false,
		`alter table caskeleton.a add column b int`:                              false,
		`alter table caskeleton.a add column b int not null default 7`:           false,
		`create table caskeleton.b (n int not null)`:                             false,
		`create index b on caskeleton.a (n)`:                                     false,
		`alter table caskeleton.a alter b set default 'x', alter b set not null`: false,
		`-- drop table caskeleton.a`:                                             false,
	} {
		require.Equal(t, want, breaks(sql+";") != "", sql)
	}
}
