// Package audit says who changed what. A [Stamp] is four columns of a row: who made it and who changed it last. An [Action] is what an operator
// did by hand, and why; a [Trail] keeps it in the transaction that did it.
//
// INSERT sets all four columns, from the time of the transaction and one actor; UPDATE moves only updated_at and updated_by; created_at and created_by
// never change. The actor is that of reqctx, "system" where nobody acts. Stores keep this twice: by what they write, and by a trigger
// that the kit's stream "core" brings along. adapter/postgres/pgaudit has both, and keeps the actions of operators.
//
// Who may run SQL may claim to be anybody: the columns tell colleagues what happened, and prove nothing against the service itself.
package audit
