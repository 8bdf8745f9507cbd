// Package redistest gives a test a real Redis of its own: on loopback, with a random port, nothing on disk, and gone with the test's process,
// however that ends. A [Proxy] in front of it breaks the network.
package redistest
