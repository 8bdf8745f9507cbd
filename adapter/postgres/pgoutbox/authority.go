package pgoutbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
	"caskeleton.dev/outbox"
)

// Authority says who records and ships events: "v2" is the kit, "v1" the outbox that it takes over from, in the table Legacy.
type Authority struct{ Version, Legacy string }

// Taken is what [TakeAuthority] did.
type Taken struct {
	Already bool // v2 had the authority: nothing was done
	Copied  int  // undelivered events, which the kit delivers
	Dead    int  // events that the legacy relay had given up, where they were left in its table
}

// Dead says what becomes of events that the legacy relay has given up.
type Dead string

// The choices; without one, an outbox that has such events is not taken over.
const (
	DeadUndecided Dead = ""
	DeadLeave     Dead = "leave"   // they stay in the legacy table and are not delivered
	DeadDeliver   Dead = "deliver" // they are delivered, in their places
)

const (
	authorityTries = 50
	authorityPause = 300 * time.Millisecond // at most, between two tries
	authorityWait  = "200ms"                // for a lock, so that appends never queue for longer
	copyBatch      = 500
)

// ReadAuthority returns who has the authority. dsn leads to the owner's role, as in [Premake].
func ReadAuthority(ctx context.Context, dsn string) (a Authority, err error) {
	err = withControl(ctx, "pgoutbox.ReadAuthority", dsn, func(t pgx.Tx) (bool, error) {
		a, err = authority(ctx, t, "")
		return true, err
	})
	return a, err
}

// YieldAuthority gives the authority to v1 before the kit has recorded anything: appends write to the legacy table ("public.outbox_event"),
// whose owner's role dsn leads to, until [TakeAuthority]. Yielding again to the same table changes nothing.
func YieldAuthority(ctx context.Context, dsn, legacy string) error {
	return exclusively(ctx, "pgoutbox.YieldAuthority", dsn, func(t pgx.Tx, a Authority) error {
		switch {
		case a == Authority{"v1", legacy}:
			return nil
		case a.Legacy != "":
			return fmt.Errorf("pgoutbox: the authority is %s and the legacy table is %s already: it goes from v1 to v2 only, and once", a.Version, a.Legacy)
		}
		var recorded bool
		if err := t.QueryRow(ctx, `select exists (select from caskeleton.outbox_counter)`).Scan(&recorded); err != nil {
			return err
		}
		if recorded {
			return errors.New("pgoutbox: the kit has recorded events already, and the authority goes from v1 to v2 only: let both outboxes run side by side until the legacy one is empty")
		}
		l, err := readLegacy(ctx, t, legacy)
		if err != nil {
			return err
		}
		if _, err := t.Exec(ctx, l.appendFunction()); err != nil {
			return err
		}
		// Whoever may record events may do so here too.
		_, err = t.Exec(ctx, `revoke all on function caskeleton.outbox_append_v1(jsonb, jsonb, bytea) from public;
			do $$ declare role regrole; begin
			for role in select grantee from pg_catalog.pg_class, pg_catalog.aclexplode(relacl)
				where oid = 'caskeleton.outbox_event'::regclass and privilege_type = 'INSERT' and grantee <> 0 loop
				execute format('grant execute on function caskeleton.outbox_append_v1(jsonb, jsonb, bytea) to %s', role);
			end loop; end $$`)
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, `update caskeleton.outbox_control set authority = 'v1', legacy = $1, epoch = epoch + 1 where singleton`, legacy)
		return err
	})
}

// TakeAuthority gives the authority to the kit, in one transaction and for good: it copies what the legacy relay has not published, in
// order, and makes every later write to the legacy table fail. Writers of both kinds wait while it copies. It tries for the locks again
// and again, for 200 ms each time; where they are not to be had, the error names who holds them.
func TakeAuthority(ctx context.Context, dsn string, dead Dead) (taken Taken, err error) {
	if dead != DeadUndecided && dead != DeadLeave && dead != DeadDeliver {
		return Taken{}, fmt.Errorf("pgoutbox: %q is not a way to treat dead events: take leave or deliver", dead)
	}
	err = exclusively(ctx, "pgoutbox.TakeAuthority", dsn, func(t pgx.Tx, a Authority) error {
		taken = Taken{Already: a.Version == "v2"}
		if taken.Already {
			return nil
		}
		l, err := readLegacy(ctx, t, a.Legacy)
		if err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `lock table `+l.name+` in share row exclusive mode`); err != nil {
			return err
		}
		var odd int
		err = t.QueryRow(ctx, `select count(*) filter (where status = 'DEAD'), count(*) filter (where status <> 'PUBLISHED'
			and id::text !~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$') from `+l.name).Scan(&taken.Dead, &odd)
		switch {
		case err != nil:
			return err
		case odd > 0:
			return fmt.Errorf("pgoutbox: %d undelivered events of %s have ids that are not UUIDs, which the kit's are: let the legacy relay deliver them first", odd, l.name)
		case taken.Dead > 0 && dead == DeadUndecided:
			return fmt.Errorf("pgoutbox: %s has %d events that were given up (DEAD): choose to leave them there or to deliver them (--dead leave, --dead deliver)", l.name, taken.Dead)
		}
		// First, since the append reads it.
		if _, err := t.Exec(ctx, `update caskeleton.outbox_control set authority = 'v2', epoch = epoch + 1 where singleton`); err != nil {
			return err
		}
		if taken.Copied, err = copyLegacy(ctx, t, l, dead == DeadDeliver); err != nil {
			return err
		}
		if dead == DeadDeliver {
			taken.Dead = 0
		}
		_, err = t.Exec(ctx, l.refusal())
		return err
	})
	if err != nil {
		return Taken{}, err
	}
	return taken, nil
}

func copyLegacy(ctx context.Context, t pgx.Tx, l legacyTable, dead bool) (copied int, err error) {
	if _, err := t.Exec(ctx, l.undelivered(dead)); err != nil {
		return 0, err
	}
	for {
		rows, err := t.Query(ctx, fmt.Sprintf(`fetch %d from legacy`, copyBatch))
		if err != nil {
			return 0, err
		}
		events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (outbox.Event, error) {
			e := outbox.Event{SchemaVersion: 1, ContentType: "application/json"}
			err := row.Scan(&e.ID, &e.AggregateType, &e.AggregateID, &e.Type, &e.Payload, &e.OccurredAt)
			return e, err
		})
		if err != nil {
			return 0, err
		}
		if len(events) == 0 {
			_, err := t.Exec(ctx, `close legacy`) // an open one would be in the way of the trigger
			return copied, err
		}
		args, err := appendArgs(events)
		if err != nil {
			return 0, err
		}
		tag, err := t.Exec(ctx, appendSQL, args...)
		if err != nil {
			return 0, err
		}
		if tag.RowsAffected() != int64(len(events)) {
			return 0, fault.Textf("pgoutbox: %d of %d legacy events were copied", tag.RowsAffected(), len(events))
		}
		copied += len(events)
	}
}

// exclusively runs change while no append, claim or settlement does, and tries again where a lock is not free.
func exclusively(ctx context.Context, op, dsn string, change func(pgx.Tx, Authority) error) error {
	var a Authority
	tries := 0
	err := withControl(ctx, op, dsn, func(t pgx.Tx) (bool, error) {
		_, err := t.Exec(ctx, `select pg_advisory_xact_lock(`+controlKeys+`)`)
		if err == nil {
			a, err = authority(ctx, t, "for update")
		}
		if err == nil {
			err = change(t, a)
		}
		tries++
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == pgerrcode.LockNotAvailable {
			return tries == authorityTries, err
		}
		return true, err
	})
	return err
}

func authority(ctx context.Context, t pgx.Tx, lock string) (a Authority, err error) {
	err = t.QueryRow(ctx, `select authority, coalesce(legacy, '') from caskeleton.outbox_control where singleton `+lock).Scan(&a.Version, &a.Legacy)
	if errors.Is(err, pgx.ErrNoRows) {
		return a, fault.Text("pgoutbox: caskeleton.outbox_control has lost its row: restore it")
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == pgerrcode.UndefinedTable {
		return a, fault.Text("pgoutbox: there is no caskeleton.outbox_control: run migrate up, with the stream outbox-storage, first")
	}
	return a, err
}

// withControl runs try in transactions of one connection until it says that it is done.
func withControl(ctx context.Context, op, dsn string, try func(pgx.Tx) (done bool, err error)) error {
	errs, err := postgres.NewClassifier()
	if err != nil {
		return err
	}
	conn, err := connectOwner(ctx, op, dsn, "caskeleton-authority", authorityWait, errs)
	if err != nil {
		return err
	}
	defer closeOwner(ctx, conn)
	for {
		done := false
		err := pgx.BeginFunc(ctx, conn, func(t pgx.Tx) (err error) {
			done, err = try(t)
			return err
		})
		switch {
		case err == nil:
			return nil
		case done:
			return blamed(ctx, conn, err, told(ctx, op, errs, err))
		}
		// Whoever queued behind the last try gets through first.
		if err := backoff.Wait(ctx, backoff.Jitter(authorityPause, 2)); err != nil {
			return err
		}
	}
}

const holdersSQL = `
select coalesce(string_agg(format('pid %s for %s s', l.pid, l.age), ', ' order by l.age desc), '') from (
  select l.pid, max(extract(epoch from clock_timestamp() - a.xact_start)::int) as age
  from pg_catalog.pg_locks l join pg_catalog.pg_stat_activity a on a.pid = l.pid
  where l.granted and l.pid <> pg_catalog.pg_backend_pid() and a.datname = current_database() and (
    l.locktype = 'advisory' and l.objsubid = 2 and (l.classid::bigint, l.objid::bigint) = (` + controlKeys + `) or
    l.locktype = 'relation' and l.relation = (select pg_catalog.to_regclass(legacy) from caskeleton.outbox_control where singleton)
      and l.mode not in ('AccessShareLock', 'RowShareLock'))
  group by l.pid
) l`

// told translates what the server or the network said. What is of this package is meant to be read as it is.
func told(ctx context.Context, op string, errs *postgres.Classifier, err error) error {
	_, server := errors.AsType[*pgconn.PgError](err)
	if !server && strings.HasPrefix(err.Error(), "pgoutbox: ") {
		return err
	}
	return errs.Translate(ctx, op, err)
}

// blamed names the sessions that a lock was waited for in vain.
func blamed(ctx context.Context, conn *pgx.Conn, err, shown error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != pgerrcode.LockNotAvailable {
		return shown
	}
	var holders string
	if look := conn.QueryRow(ctx, holdersSQL).Scan(&holders); look != nil || holders == "" {
		return shown
	}
	return fmt.Errorf("%w: in the way are %s: end them, or try again when they are done", shown, holders)
}
