package intlock

// RowOf tells tests which row a key has.
var RowOf = rowOf
