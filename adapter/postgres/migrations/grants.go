package migrations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// table is what the runtime role may do with one of the kit's tables.
type table struct {
	name, stream string
	grants       []string
}

// Roles are whom [Migrator.Grants] writes grants for.
type Roles struct {
	Runtime string // the role that the service works as; required, and not the owner
	Owner   string // the role that migrates; "" means the one that the DSN connects as

	// Of the runtime role's sessions, for a pooler that passes no start-up parameters on. 0 means the pool's default: 10 s, 3 s and 10 s.
	StatementTimeout, LockTimeout, IdleTxTimeout time.Duration
}

var roleName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$-]{0,62}$`)

// Grants returns the statements that leave the runtime role with DML on the tables of the streams of m and nothing else: no DDL, no
// other schema. They are for what there is now, and to be run again after each Up that made something. It only reads, and warns of streams in
// the database that are not the kit's and that m does not know: the role loses its right to read their histories. Running them
// takes the owner of the schemas that may also alter the runtime role, or a superuser.
func (m *Migrator) Grants(ctx context.Context, r Roles) ([]string, error) {
	tx, done, err := snapshot(ctx, m.open)
	if err != nil {
		return nil, err
	}
	defer done()
	g, err := m.grants(ctx, tx, r)
	if err != nil {
		return nil, err
	}
	return g.statements, nil
}

// Grant runs what Grants returns, in one transaction.
func (m *Migrator) Grant(ctx context.Context, r Roles) ([]string, error) {
	db, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("migrations: begin: %w", told(err))
	}
	defer func() { _ = tx.Rollback() }()
	g, err := m.grants(ctx, tx, r)
	if err != nil {
		return nil, err
	}
	for _, s := range g.statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return nil, fmt.Errorf("migrations: nothing was granted: %s: %w", s, told(err))
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, fmt.Errorf("migrations: commit the grants: %w", told(err))
	}
	return g.statements, nil
}

// grants collects statements.
type grants struct {
	runtime, owner, database string // quoted
	statements               []string
}

func (g *grants) addf(format string, args ...any) {
	g.statements = append(g.statements, fmt.Sprintf(format, args...))
}

func (m *Migrator) grants(ctx context.Context, q querier, r Roles) (*grants, error) {
	if r.StatementTimeout < 0 || r.LockTimeout < 0 || r.IdleTxTimeout < 0 {
		return nil, errors.New("migrations: a timeout of Roles is negative: leave it 0 for the default")
	}
	for _, role := range []string{r.Runtime, r.Owner} {
		if role != "" && !roleName.MatchString(role) {
			return nil, errors.New("migrations: the name of a role must be letters, digits, _, $ and -, at most 63: write it as it is, without quotes")
		}
	}
	owner, database, err := whoOwns(ctx, q, r)
	if err != nil {
		return nil, err
	}
	g := &grants{runtime: identifier(r.Runtime), owner: identifier(owner), database: identifier(database)}
	public, err := schemaExists(ctx, q, "public")
	if err != nil {
		return nil, err
	}
	g.nothing(public)
	for _, schema := range m.schemas() {
		exists, err := schemaExists(ctx, q, schema)
		if err != nil {
			return nil, err
		}
		switch {
		case !exists:
		case schema == kitSchema:
			if err := m.kitGrants(ctx, q, g); err != nil {
				return nil, err
			}
		default:
			g.schema(schema)
		}
	}
	g.settings(r)
	return g, nil
}

// whoOwns names the owner and the database, and refuses a runtime role for which grants would mean nothing.
func whoOwns(ctx context.Context, q querier, r Roles) (owner, database string, err error) {
	var exists, owns, super, member bool
	err = q.QueryRowContext(ctx, `select coalesce(nullif($2, ''), current_user), current_database(), r.oid is not null, o.oid is not null, coalesce(r.rolsuper, false),
		coalesce(pg_has_role(r.oid, o.oid, 'member') and not r.rolsuper, false)
		from (select) x left join pg_catalog.pg_roles r on r.rolname = $1
		left join pg_catalog.pg_roles o on o.rolname = coalesce(nullif($2, ''), current_user)`, r.Runtime, r.Owner).Scan(&owner, &database, &exists, &owns, &super, &member)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("migrations: look for the roles: %w", told(err))
	case !exists:
		return "", "", fmt.Errorf("migrations: there is no role %q: make it with CREATE ROLE ... LOGIN, and a password of its own, first", r.Runtime)
	case !owns:
		return "", "", fmt.Errorf("migrations: there is no role %q to own the schema: make it with CREATE ROLE ... LOGIN first", owner)
	case r.Runtime == owner:
		return "", "", fmt.Errorf("migrations: %q is the owner: the service needs a role of its own, which cannot change the schema", owner)
	case super:
		return "", "", fmt.Errorf("migrations: %q is a superuser, whom no grant limits: ALTER ROLE ... NOSUPERUSER, or take another role", r.Runtime)
	case member:
		return "", "", fmt.Errorf("migrations: %q is a member of the owner %q and may do all that it may: REVOKE that, or take another role", r.Runtime, owner)
	}
	return owner, database, nil
}

// nothing takes away what the role has by itself, or as everybody, in this database: new databases let everybody make temporary tables.
func (g *grants) nothing(public bool) {
	g.addf("revoke create, temporary on database %s from public", g.database)
	g.addf("revoke all on database %s from %s", g.database, g.runtime)
	g.addf("grant connect on database %s to %s", g.database, g.runtime)
	g.addf("grant create on database %s to %s", g.database, g.owner)
	if !public {
		return
	}
	g.addf("revoke create on schema public from public")
	g.addf("revoke all on schema public from %s", g.runtime)
}

func (m *Migrator) kitGrants(ctx context.Context, q querier, g *grants) error {
	g.addf("revoke all on all tables in schema %s from %s, public", kitSchema, g.runtime)
	g.addf("revoke all on schema %s from %s, public", kitSchema, g.runtime)
	g.addf("grant usage on schema %s to %s", kitSchema, g.runtime)
	var v1 bool
	if err := q.QueryRowContext(ctx, `select pg_catalog.to_regprocedure('caskeleton.outbox_append_v1(jsonb, jsonb, bytea)') is not null`).Scan(&v1); err != nil {
		return fmt.Errorf("migrations: look for the function of a legacy outbox: %w", told(err))
	}
	if v1 {
		g.addf("grant execute on function %s.outbox_append_v1(jsonb, jsonb, bytea) to %s", kitSchema, g.runtime)
	}
	histories, err := histories(ctx, q)
	if err != nil {
		return err
	}
	for _, h := range histories {
		g.addf("grant select on %s.%s to %s", kitSchema, h, g.runtime)
	}
	for _, s := range m.streams {
		for _, t := range tables {
			if !s.kit || t.stream != s.Name || len(t.grants) == 0 {
				continue
			}
			exists, err := tableExists(ctx, q, t.name)
			if err != nil {
				return err
			}
			if exists {
				g.addf("grant %s on %s.%s to %s", strings.Join(t.grants, ", "), kitSchema, t.name, g.runtime)
			}
		}
	}
	return nil
}

// schema is one of the service's own.
func (g *grants) schema(name string) {
	g.addf("revoke all on all tables in schema %s from %s, public", name, g.runtime)
	g.addf("revoke all on schema %s from %s, public", name, g.runtime)
	g.addf("grant usage on schema %s to %s", name, g.runtime)
	g.addf("grant select, insert, update, delete on all tables in schema %s to %s", name, g.runtime)
	g.addf("grant usage, select on all sequences in schema %s to %s", name, g.runtime)
	g.addf("alter default privileges for role %s in schema %s grant select, insert, update, delete on tables to %s", g.owner, name, g.runtime)
	g.addf("alter default privileges for role %s in schema %s grant usage, select on sequences to %s", g.owner, name, g.runtime)
}

// settings hold where no session has any of its own, behind a transaction pooler.
func (g *grants) settings(r Roles) {
	for _, s := range []struct{ name, value string }{
		{"search_path", "''"},
		{"timezone", "'UTC'"},
		{"default_transaction_isolation", "'read committed'"},
		{"statement_timeout", milliseconds(cmp.Or(r.StatementTimeout, 10*time.Second))},
		{"lock_timeout", milliseconds(cmp.Or(r.LockTimeout, 3*time.Second))},
		{"idle_in_transaction_session_timeout", milliseconds(cmp.Or(r.IdleTxTimeout, 10*time.Second))},
	} {
		g.addf("alter role %s in database %s set %s = %s", g.runtime, g.database, s.name, s.value)
	}
}

// schemas are those of the streams, the kit's first, each once.
func (m *Migrator) schemas() []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range m.streams {
		if !seen[s.Schema] {
			out = append(out, s.Schema)
		}
		seen[s.Schema] = true
	}
	return out
}

// identifier quotes a name.
func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }
