package migrations

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// schemaSQL describes all that is in the schemas of the kit and of the tests' service, a line an object, from pg_catalog alone.
const schemaSQL = `
with relation as (
  select c.*, n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname in ('caskeleton', 'orders')
), line (text) as (
  select format('schema %s', nspname) from pg_namespace where nspname in ('caskeleton', 'orders')
  union all
  select format('relation %s.%s kind %s options %s bound %s key %s', nspname, relname, relkind, reloptions, pg_get_expr(relpartbound, oid), pg_get_partkeydef(oid)) from relation
  union all
  select format('column %s.%s.%s %s %s not null %s default %s identity %s', nspname, relname, attnum, attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid), attidentity)
  from relation r join pg_attribute a on a.attrelid = r.oid and attnum > 0 and not attisdropped left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
  union all
  select format('constraint %s.%s %s %s', nspname, relname, conname, pg_get_constraintdef(o.oid)) from relation r join pg_constraint o on o.conrelid = r.oid
  union all
  select format('index %s valid %s', pg_get_indexdef(indexrelid), indisvalid) from relation r join pg_index i on i.indrelid = r.oid
  union all
  select format('trigger %s enabled %s', pg_get_triggerdef(t.oid), tgenabled) from relation r join pg_trigger t on t.tgrelid = r.oid where not tgisinternal
  union all
  select format('function %s', pg_get_functiondef(p.oid)) from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname in ('caskeleton', 'orders')
)
select coalesce(string_agg(text, E'\n' order by text collate "C"), '') from line`

func schemaOf(t *testing.T, dsn string) string {
	t.Helper()
	return query[string](t, dsn, schemaSQL)
}

func TestSchemaOfSeesEachKindOfDifference(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, orders("1_order", createOrders))
	seen := map[string]bool{schemaOf(t, dsn): true}
	for _, change := range []string{
		`alter table orders.order_line add n int`,
		`alter table orders.order_line alter n type bigint`,
		`alter table orders.order_line alter n set not null`,
		`alter table orders.order_line alter n set default 7`,
		`alter table orders.order_line add constraint c check (n > 0)`,
		`create index i on orders.order_line (n)`,
		`alter table orders.order_line set (fillfactor = 50)`,
		`create function orders.f() returns trigger language plpgsql as 'begin return new; end'`,
		`create trigger g before insert on orders.order_line for each row execute function orders.f()`,
		`alter table orders.order_line disable trigger g`,
		`create table orders.p (n int) partition by list (n)`,
		`create table orders.q partition of orders.p for values in (1)`,
		`update pg_index set indisvalid = false where indexrelid = 'orders.i'::regclass`,
	} {
		execSQL(t, dsn, change)
		now := schemaOf(t, dsn)
		require.False(t, seen[now], "%s is not seen in\n%s", change, now)
		seen[now] = true
	}
	require.Contains(t, strings.Join(strings.Fields(schemaOf(t, dsn)), " "), "relation orders.order_line kind r")
}
