// Package httpapi is the edge of a service that speaks HTTP and JSON: it gives each request an id, reads and decodes its body
// strictly, routes it, and renders whatever error comes back as RFC 9457 problem+json.
//
// A handler is a [HandlerFunc]: it returns an error, and the [Mux] it is registered with renders the error. [Wrap] goes around the
// whole mux, once; [NewServer] puts bounds around that.
//
//	mux := httpapi.NewMux(log)
//	mux.HandleFunc("POST /orders", placeOrder)
//	srv := httpapi.NewServer(addr, httpapi.Wrap(mux, log), log)
//
// Clients see a code, the code's client text and the fields at fault, never a cause. Logs get the cause and the route's pattern, never
// a path, a query string, a header, a body or a value out of one. Requests that are no HTTP at all are answered by net/http itself,
// in plain text, before any handler runs.
package httpapi
