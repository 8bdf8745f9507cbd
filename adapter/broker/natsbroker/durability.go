package natsbroker

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// Sync says whether a server fsyncs before it acknowledges (sync_always). By default it does so every two minutes.
type Sync int

// What is known of it.
const (
	SyncUnknown Sync = iota
	SyncAlways
	SyncLater
)

func (s Sync) String() string {
	return [...]string{"unknown", "always", "later"}[s]
}

// Durability is what an acknowledgement of a stream is worth.
type Durability struct {
	Replicas int
	Sync     Sync
	Why      string // where Sync is unknown: what stands in the way
}

// enoughReplicas survive a power cut of one of them without an fsync, as long as they do not lose power together.
const enoughReplicas = 3

// Check makes the stream where that was asked for, and verifies that what it acknowledges is stored. It fails with a [NotDurableError]
// that names each setting that is wrong, or with outbox.ErrBrokerDown where the broker does not answer.
func (s *Stream) Check(ctx context.Context) (Durability, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.check(ctx)
}

// ready returns the epoch that the stream was checked in. It checks where that has not been done since the last reconnect.
func (s *Stream) ready(ctx context.Context) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checked && s.epoch == s.conn.epoch() {
		return s.epoch, nil
	}
	_, err := s.check(ctx)
	return s.epoch, err
}

func (s *Stream) check(ctx context.Context) (Durability, error) {
	s.checked = false
	epoch := s.conn.epoch() // first, so that a reconnect during the check calls for another one
	info, err := s.info(ctx)
	if err != nil {
		return Durability{}, err
	}
	d := Durability{Replicas: info.Config.Replicas}
	if d.Replicas < enoughReplicas {
		d.Sync, d.Why = s.conn.sync(ctx, info)
	}
	refusals := append(s.opts.refuseConfig(info.Config), s.opts.refuseSync(d)...)
	if len(refusals) > 0 {
		return d, &NotDurableError{Stream: s.opts.Name, Refusals: refusals}
	}
	if d.Replicas < enoughReplicas && d.Sync == SyncUnknown {
		s.conn.opts.Logger.WarnContext(ctx, "NATS may lose acknowledged events in a power cut", "stream", s.opts.Name, "replicas", d.Replicas, "why", d.Why)
	}
	s.checked, s.epoch = true, epoch
	return d, nil
}

// refuseConfig lists the settings of a stream that lose acknowledged events or store them twice.
func (o *StreamOptions) refuseConfig(c jetstream.StreamConfig) []Refusal {
	var all []Refusal
	refuse := func(broken bool, setting, value, fix string) {
		if broken {
			all = append(all, Refusal{setting, value, fix})
		}
	}
	refuse(!slices.Contains(c.Subjects, o.Prefix+".>"), "subjects", fmt.Sprintf("%q", c.Subjects), fmt.Sprintf("add %q, or set Prefix", o.Prefix+".>"))
	refuse(c.Storage != jetstream.FileStorage, "storage", "memory", "a restart empties it; make the stream again with file storage")
	refuse(c.NoAck, "no_ack", "true", "nothing would ever count as stored; set it to false")
	refuse(c.PersistMode == jetstream.AsyncPersistMode, "persist_mode", "async", "it acknowledges before it writes; make the stream again with the default")
	refuse(c.Discard != jetstream.DiscardNew, "discard", "old", "a full stream would drop events nobody has read; set it to new")
	refuse(c.MaxMsgsPerSubject > 0 && !c.DiscardNewPerSubject, "max_msgs_per_subject", strconv.FormatInt(c.MaxMsgsPerSubject, 10),
		"discard does not cover it, and a new event would drop one that nobody has read; set it to -1")
	refuse(c.Retention != jetstream.LimitsPolicy, "retention", fmt.Sprint(c.Retention), "the first consumer's acknowledgement would delete events for all; make the stream again with limits")
	refuse(c.Duplicates < o.ResendHorizon, "duplicate_window", c.Duplicates.String(), fmt.Sprintf("an event may be sent again for %v; set it to that at least", o.ResendHorizon))
	refuse(c.Sealed, "sealed", "true", "it takes no more events; use another stream")
	return all
}

func (o *StreamOptions) refuseSync(d Durability) []Refusal {
	const fix = "set sync_always in the server's jetstream block, or use 3 replicas"
	value := strconv.Itoa(d.Replicas) + " replicas with sync_always "
	switch {
	case d.Replicas >= enoughReplicas || d.Sync == SyncAlways || d.Sync == SyncUnknown && o.AcceptUnknownSync:
		return nil
	case d.Sync == SyncLater:
		return []Refusal{{"sync_always", "false with " + strconv.Itoa(d.Replicas) + " replicas", "the server acknowledges up to two minutes before it fsyncs; " + fix}}
	default:
		return []Refusal{{"sync_always", value + "unknown (" + d.Why + ")", "give MonitorURL; " + fix + "; or set AcceptUnknownSync, and a power cut may take acknowledged events"}}
	}
}
