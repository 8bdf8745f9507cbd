package outbox

import "sync"

// slots counts the lanes that are claimed and not yet settled. Safe for concurrent use.
type slots struct {
	freed chan struct{} // receives once after one or more frees

	mu   sync.Mutex
	n    int
	left after
}

// after says what is to be done for lanes that were settled.
type after struct {
	look bool // some are known to be due
	ask  bool // of some only the store knows whether they are
}

func newSlots() *slots { return &slots{freed: make(chan struct{}, 1)} }

func (s *slots) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

func (s *slots) take(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n += n
}

// free gives n slots back, and says what is to be done for their lanes.
func (s *slots) free(n int, a after) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n -= n
	s.left = after{s.left.look || a.look, s.left.ask || a.ask}
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// todo returns what is to be done for the lanes freed since the last call.
func (s *slots) todo() after {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.left
	s.left = after{}
	return a
}
