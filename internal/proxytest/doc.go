// Package proxytest puts a proxy between a test and its PostgreSQL that breaks one connection at a chosen message, as a network, a
// pooler or a server may: before the message has arrived, within it, after it, while it waits, or on its answer.
//
// [New] returns a proxy that passes everything on, except requests to cancel a statement. [Proxy.Break] arms a [Fault] for the next
// message that holds a pattern, and [Proxy.BreakAt] for the n-th statement that changes anything; it strikes once, and every other connection goes on as if nothing were. The proxy, its connections and
// its goroutines end with the test.
package proxytest
