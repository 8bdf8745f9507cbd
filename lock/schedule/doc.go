// Package schedule runs named jobs at most once per slot, however many instances there are.
//
// A [Timetable] divides time into slots, and the clock of the store alone says which one it is: a node whose own clock is wrong changes nothing. Whoever
// inserts the row of a job and a slot first runs it, so that a unique key keeps a slot from running twice. The lock beside it is for efficiency: it
// keeps the runs of one job from overlapping, for as long as a run keeps to [Job.AtMost]. A slot whose turn comes while the run before is still on is
// skipped.
//
// At most once means that a slot may be lost: what a crash, a failure or a stop cut short is not run again before the next slot. A job that must get
// everything done therefore looks for what is left to do. Of the slots that passed while nobody could run them, the latest is made up for if it is
// not older than [Options.CatchUp]; the others are not.
package schedule
