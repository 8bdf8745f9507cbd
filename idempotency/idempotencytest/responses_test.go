package idempotencytest_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/idempotency/idempotencytest"
	"caskeleton.dev/internal/testkit/suite"
)

// shelf is a response store in memory, the smallest that keeps the promises, but for one bug.
type shelf struct {
	bug  string
	mu   sync.Mutex
	kept map[idempotency.Ref][]byte
}

func newShelf(_ *testing.T, bug string) idempotency.ResponseStore {
	return &shelf{bug: bug, kept: map[idempotency.Ref][]byte{}}
}

func (s *shelf) key(ref idempotency.Ref) idempotency.Ref {
	if s.bug == "knows scopes only" {
		return ref[:64]
	}
	return ref
}

func (s *shelf) Put(_ context.Context, ref idempotency.Ref, object []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.bug {
	case "keeps the caller's bytes":
	case "truncates":
		object = bytes.Clone(object[:min(len(object), 1<<20)])
	default:
		object = bytes.Clone(object)
	}
	if s.bug != "loses some" || len(s.kept) < 50 {
		s.kept[s.key(ref)] = object
	}
	return nil
}

func (s *shelf) Get(_ context.Context, ref idempotency.Ref) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok := s.kept[s.key(ref)]
	if !ok && s.bug != "what is not there is empty" {
		return nil, errors.New("no such object")
	}
	return object, nil
}

func (s *shelf) Delete(_ context.Context, ref idempotency.Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.kept[ref]
	switch {
	case s.bug == "deletes nothing":
		return nil
	case s.bug == "deletes all":
		clear(s.kept)
	case !ok && s.bug == "misses what it deletes":
		return errors.New("no such object")
	}
	delete(s.kept, ref)
	return nil
}

func (s *shelf) List(_ context.Context, after idempotency.Ref, limit int) (refs []idempotency.Ref, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref := range s.kept {
		if ref > after || s.bug == "lists from the beginning" {
			refs = append(refs, ref)
		}
	}
	if slices.Sort(refs); s.bug == "lists backwards" {
		slices.Reverse(refs)
	}
	if s.bug == "lists all" {
		return refs, nil
	}
	return refs[:min(limit, len(refs))], nil
}

func TestACorrectResponseStorePasses(t *testing.T) {
	idempotencytest.TestResponseStore(t, idempotencytest.ResponseHarness{New: func(t *testing.T) idempotency.ResponseStore {
		t.Helper()
		return newShelf(t, "")
	}})
}

func TestABrokenResponseStoreFails(t *testing.T) {
	suite.TestBroken(t, idempotencytest.ResponseChecks(), map[string]string{
		"keeps the caller's bytes":   "an object is what was put",
		"truncates":                  "an object is what was put",
		"knows scopes only":          "an object is what was put",
		"what is not there is empty": "what is not there is an error",
		"misses what it deletes":     "what is not there is an error",
		"deletes nothing":            "a deleted object is gone",
		"deletes all":                "a deleted object is gone",
		"lists from the beginning":   "refs are listed in order",
		"lists backwards":            "refs are listed in order",
		"lists all":                  "refs are listed in order",
		"loses some":                 "many work at once",
	}, newShelf)
}
