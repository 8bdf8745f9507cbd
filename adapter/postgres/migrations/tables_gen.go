// Code generated from registry/tables.yaml by make generate. DO NOT EDIT.

package migrations

// tables is every table of the kit and what the runtime role may do with it; nothing changes it.
var tables = []table{
	{name: "migration_checksum", stream: "core", grants: []string{"select"}},
	{name: "commit_witness", stream: "core", grants: []string{"select", "insert", "delete"}},
	{name: "operator_action", stream: "core", grants: []string{"select", "insert (act, operator, verb, kind, subject, filter, reason, changed, before, after)"}},
	{name: "idempotency_record", stream: "idempotency", grants: []string{"select", "insert", "update", "delete"}},
	{name: "idempotency_key", stream: "idempotency", grants: []string{"select", "insert", "delete"}},
	{name: "idempotency_response", stream: "idempotency", grants: []string{"select", "insert"}},
	{name: "outbox_control", stream: "outbox-storage", grants: []string{"select", "update (singleton)"}},
	{name: "outbox_identity", stream: "outbox-storage", grants: []string{"select", "insert"}},
	{name: "outbox_event", stream: "outbox-storage", grants: []string{"select", "insert"}},
	{name: "outbox_counter", stream: "outbox-storage", grants: []string{"select", "insert", "update"}},
	{name: "outbox_lane", stream: "outbox-polling", grants: []string{"select", "insert", "update", "delete"}},
	{name: "inbox_message", stream: "inbox", grants: []string{"select", "insert", "update"}},
	{name: "lock_lease", stream: "lock", grants: []string{"select", "insert", "update", "delete"}},
	{name: "job_run", stream: "lock", grants: []string{"select", "insert", "update", "delete"}},
}
