// Package memory has the drivers that keep what they are given in this process: for a service of one instance, and for tests. They keep the same
// promises as those that share a store, and pass the same suites; only nobody else sees them, and the end of the process ends them.
package memory
