package idempotencytest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"testing"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/testkit/suite"
)

// ResponseHarness makes what [TestResponseStore] tests.
type ResponseHarness struct {
	// New returns an empty store that no other check uses: they run in parallel. It cleans up by t.Cleanup.
	New func(t *testing.T) idempotency.ResponseStore
}

// TestResponseStore checks what [idempotency.ResponseStore] promises, each promise in a subtest of its name.
func TestResponseStore(t *testing.T, h ResponseHarness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("idempotencytest: ResponseHarness.New is required: let it return an empty store")
	}
	suite.Test(t, responseChecks(), h.New)
}

func responseChecks() []suite.Check[idempotency.ResponseStore] {
	return []suite.Check[idempotency.ResponseStore]{
		{Name: "an object is what was put", Run: puts},
		{Name: "what is not there is an error", Run: misses},
		{Name: "a deleted object is gone", Run: deletes},
		{Name: "refs are listed in order", Run: lists},
		{Name: "many work at once", Run: together},
	}
}

func newRef() idempotency.Ref {
	return idempotency.Ref(newScope().String() + "/" + rand.Text() + "/" + rand.Text())
}

func puts(ctx context.Context, o idempotency.ResponseStore) {
	want := map[idempotency.Ref][]byte{}
	for _, object := range [][]byte{{}, []byte("\x00\xff\r\n"), bytes.Repeat([]byte("\x00large"), 400_000)} {
		ref, given := newRef(), bytes.Clone(object)
		suite.Must(o.Put(ctx, ref, given), "put")
		for i := range given {
			given[i]++ // it is the caller's again
		}
		want[ref] = object
	}
	sibling := idempotency.Ref(string(newRef())[:64] + "/A/A")
	for _, ref := range []idempotency.Ref{sibling, sibling + "A", sibling[:64] + "/AA/A"} {
		suite.Must(o.Put(ctx, ref, []byte(ref)), "put")
		want[ref] = []byte(ref)
	}
	for ref, object := range want {
		got, err := o.Get(ctx, ref)
		suite.Must(err, "get")
		if !bytes.Equal(object, got) {
			suite.Fail("get: want %d bytes as they were put, got %d", len(object), len(got))
		}
	}
}

func misses(ctx context.Context, o idempotency.ResponseStore) {
	suite.Must(o.Put(ctx, newRef(), []byte("x")), "put")
	if object, err := o.Get(ctx, newRef()); err == nil {
		suite.Fail("get of what was never put: %d bytes, and no error", len(object))
	}
	suite.Must(o.Delete(ctx, newRef()), "delete of what was never put")
}

func deletes(ctx context.Context, o idempotency.ResponseStore) {
	gone, kept := newRef(), newRef()
	for _, ref := range []idempotency.Ref{gone, kept} {
		suite.Must(o.Put(ctx, ref, []byte("x")), "put")
	}
	for range 2 {
		suite.Must(o.Delete(ctx, gone), "delete")
	}
	if _, err := o.Get(ctx, gone); err == nil {
		suite.Fail("get of what was deleted: no error")
	}
	_, err := o.Get(ctx, kept)
	suite.Must(err, "get beside what was deleted")
	refs, err := o.List(ctx, "", 10)
	suite.Must(err, "list")
	suite.Equal([]idempotency.Ref{kept}, refs, "list after a delete")
}

func lists(ctx context.Context, o idempotency.ResponseStore) {
	refs, err := o.List(ctx, "", 10)
	suite.Must(err, "list of nothing")
	suite.Equal(0, len(refs), "list of nothing")
	var want []idempotency.Ref
	for range 25 {
		ref := newRef()
		suite.Must(o.Put(ctx, ref, []byte("x")), "put")
		want = append(want, ref)
	}
	slices.Sort(want)
	var got []idempotency.Ref
	for after := idempotency.Ref(""); len(got) < 100; after = got[len(got)-1] {
		page, err := o.List(ctx, after, 7)
		suite.Must(err, "list")
		if len(page) == 0 {
			break
		}
		if len(page) > 7 {
			suite.Fail("list up to 7: %d", len(page))
		}
		got = append(got, page...)
	}
	suite.Equal(want, got, "all refs, 7 at a time")
}

func together(ctx context.Context, o idempotency.ResponseStore) {
	var all sync.WaitGroup
	errs := make(chan error, 200)
	for range 8 {
		all.Go(func() {
			for range 10 {
				ref := newRef()
				if err := o.Put(ctx, ref, []byte(ref)); err != nil {
					errs <- err
					continue
				}
				got, err := o.Get(ctx, ref)
				if err == nil && string(got) != string(ref) {
					err = fmt.Errorf("want %q, got %q", ref, got)
				}
				errs <- err
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		suite.Must(err, "beside others")
	}
	refs, err := o.List(ctx, "", 100)
	suite.Must(err, "list")
	suite.Equal(80, len(refs), "objects that were put at once")
}
