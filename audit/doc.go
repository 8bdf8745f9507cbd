// Package audit says who made a row and who changed it last. A [Stamp] is four columns: created_at, created_by, updated_at and updated_by.
//
// INSERT sets all four, from the time of the transaction and one actor; UPDATE moves only updated_at and updated_by; created_at and created_by
// never change. The actor is that of reqctx, "system" where nobody acts. Stores keep this twice: by what they write, and by a trigger
// that the kit's stream "core" brings along. adapter/postgres/pgaudit has both.
//
// Who may run SQL may claim to be anybody: the columns tell colleagues what happened, and prove nothing against the service itself.
package audit
