// Package pgschedule keeps the slots of scheduled jobs in PostgreSQL, in caskeleton.job_run of the stream "lock".
//
// The primary key decides who runs a slot. An instance that comes later finds the row and writes nothing. Slots, starts and ends are told
// by clock_timestamp(): no node's clock has a say. Old rows are deleted by the scheduler's own job, schedule.prune.
package pgschedule
