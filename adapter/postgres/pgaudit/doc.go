// Package pgaudit keeps the columns of an audit.Stamp in PostgreSQL. A table gets them, and the trigger of the stream "core", by
//
//	create table shop.item (
//	  ...
//	  created_at timestamptz not null,
//	  created_by text        not null,
//	  updated_at timestamptz not null,
//	  updated_by text        not null
//	);
//	create trigger audit before insert or update on shop.item for each row execute function caskeleton.audit_stamp();
//
// A statement of one row names the columns, with [Values] or [Set]; they also tell the trigger who acts. Any other (a bulk UPDATE, a COPY, a
// MERGE, what an ORM writes) needs to name none: [Act] tells the trigger who acts in the transaction. Where nobody told it, the
// trigger writes "system" for an UPDATE that names nobody new. An import that has to keep old values disables the trigger, which only the
// table's owner can. A row that an UPDATE moves to another partition is inserted there, as triggers see it, and stamped as a new one: keep the
// partition key out of what changes.
package pgaudit
