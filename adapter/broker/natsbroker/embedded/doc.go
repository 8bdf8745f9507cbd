// Package embedded runs a NATS server with JetStream inside the process, for a service that is tried out or tested without a broker of its
// own. It stores on disk with sync_always, so that what it acknowledged survives a kill of the process and a power cut; it listens nowhere
// unless told to, and then on the loopback interface only, since it asks nobody for a password.
package embedded
