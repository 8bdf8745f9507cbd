package outbox

var Printable = printable
