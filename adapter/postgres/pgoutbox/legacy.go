package pgoutbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// legacyColumns are those that the kit writes and reads in the table of whoever it takes over from. Others may be there if they may be left out.
var legacyColumns = []string{
	"id", "aggregate_type", "aggregate_id", "event_type", "payload", "occurred_at", "status", "attempt_count", "next_attempt_at",
}

// legacyTable is that table, as the catalog has it.
type legacyTable struct {
	name  string            // schema.table, lower case and without quotes
	types map[string]string // by column
}

var legacyName = regexp.MustCompile(`^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$`)

const legacySQL = `
select a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
  a.attnotnull and not a.atthasdef and a.attidentity = '' and a.attgenerated = ''
from pg_catalog.pg_attribute a where a.attrelid = pg_catalog.to_regclass($1) and a.attnum > 0 and not a.attisdropped`

func readLegacy(ctx context.Context, t pgx.Tx, name string) (legacyTable, error) {
	l := legacyTable{name: name, types: map[string]string{}}
	if !legacyName.MatchString(name) || strings.HasPrefix(name, "caskeleton.") {
		return l, errors.New("pgoutbox: the legacy table must be schema.table, lower case, in a schema that is not the kit's: write it like public.outbox_event")
	}
	rows, err := t.Query(ctx, legacySQL, name)
	if err != nil {
		return l, err
	}
	defer rows.Close()
	var unknown []string
	for rows.Next() {
		var column, typ string
		var needed bool
		if err := rows.Scan(&column, &typ, &needed); err != nil {
			return l, err
		}
		l.types[column] = typ
		if needed && !slices.Contains(legacyColumns, column) {
			unknown = append(unknown, column)
		}
	}
	if err := rows.Err(); err != nil {
		return l, err
	}
	for _, c := range legacyColumns {
		if l.types[c] == "" {
			return l, fmt.Errorf("pgoutbox: %s is not there, or has no column %s: name the table of the outbox that the kit takes over from", name, c)
		}
	}
	if len(unknown) > 0 {
		return l, fmt.Errorf("pgoutbox: %s has columns that the kit does not know and that may not be left out (%s): give them defaults first", name, strings.Join(unknown, ", "))
	}
	return l, nil
}

// appendFunction makes what records events in the legacy table, as its owner: the runtime role needs no right there. It takes the
// parameters of appendSQL. Times of one call go up, since the legacy order is by time.
func (l legacyTable) appendFunction() string {
	payload := "pg_catalog.convert_from(substring($3 from e.start for e.length), 'UTF8')::" + l.types["payload"]
	if l.types["payload"] == "bytea" {
		payload = "substring($3 from e.start for e.length)"
	}
	return fmt.Sprintf(`create function caskeleton.outbox_append_v1(jsonb, jsonb, bytea) returns bigint
language sql security definer set search_path = '' set timezone = 'UTC' as $body$
with base as materialized (
  select pg_catalog.clock_timestamp() as at
), event as materialized (
  select e.*, coalesce(e.occurred_at, base.at + e.ordinal * interval '1 microsecond') as at, a.aggregatetype, a.aggregateid
  from base, rows from (pg_catalog.jsonb_to_recordset($2) as (aggregate int, id text, type text, occurred_at timestamptz, start int, length int))
    with ordinality as e (aggregate, id, type, occurred_at, start, length, ordinal)
  join pg_catalog.jsonb_to_recordset($1) as a (n int, aggregatetype text, aggregateid text) on a.n = e.aggregate
), recorded as (
  insert into %s (id, aggregate_type, aggregate_id, event_type, payload, occurred_at, status, attempt_count, next_attempt_at)
  select e.id::%s, e.aggregatetype, e.aggregateid, e.type, %s, e.at, 'PENDING', 0, e.at from event e order by e.ordinal
  returning 1
)
select count(*) from recorded
$body$`, l.name, l.types["id"], payload)
}

// undelivered reads what the legacy relay has not published, in the order in which it would be. A row in flight may be published already,
// and is delivered again; consumers know its id.
func (l legacyTable) undelivered(dead bool) string {
	payload := "pg_catalog.convert_to(payload::text, 'UTF8')"
	if l.types["payload"] == "bytea" {
		payload = "payload"
	}
	left := "'PUBLISHED', 'DEAD'"
	if dead {
		left = "'PUBLISHED'"
	}
	return fmt.Sprintf(`declare legacy no scroll cursor for
select id::text, aggregate_type, aggregate_id, event_type, %s, occurred_at from %s where status not in (%s) order by occurred_at, id`, payload, l.name, left)
}

// refusal makes writers of the legacy table fail from the commit on: also those that would change no row, and those of a replication session.
func (l legacyTable) refusal() string {
	return fmt.Sprintf(`create or replace function caskeleton.outbox_legacy_refused() returns trigger language plpgsql set search_path = '' as $body$
begin
  raise exception 'this outbox is retired: caskeleton has taken it over' using errcode = '55000', hint = 'Stop this instance, or deploy one that records its events with the kit.';
end
$body$;
create trigger outbox_legacy_refused before insert or update on %[1]s for each statement execute function caskeleton.outbox_legacy_refused();
alter table %[1]s enable always trigger outbox_legacy_refused;
drop function caskeleton.outbox_append_v1(jsonb, jsonb, bytea)`, l.name)
}
