package proxytest

import "sync"

// Mode is what a [Fault] does to its connection.
type Mode int

const (
	// Before closes both sides: the server never sees the message.
	Before Mode = iota
	// Half passes a part of the message on and closes both sides: the server has nothing that it could act upon.
	Half
	// After closes the client's side and passes the message on: the server does its work, and has nobody to tell.
	After
	// Late closes the client's side and keeps the message until [Fault.Pass]: the server waits for it meanwhile.
	Late
	// OnAnswer passes the message on and closes both sides when the answer comes: the server has done its work.
	OnAnswer
	// Mute passes everything on and drops every answer: the client waits until it gives up.
	Mute
)

// String returns the name of the mode.
func (m Mode) String() string {
	return [...]string{"before", "half", "after", "late", "on answer", "mute"}[m]
}

// Fault strikes at one message of one connection.
type Fault struct {
	mode    Mode
	pattern []byte
	skip    int // statements until it strikes, itself included; 0: by pattern
	struck  chan struct{}
	pass    chan struct{}
	passing sync.Once
}

// Struck is closed once the connection is broken; with OnAnswer and Mute that is when the first answer has been dropped, so that the
// server is done with the message.
func (f *Fault) Struck() <-chan struct{} { return f.struck }

// Pass lets the message of a Late fault through.
func (f *Fault) Pass() { f.passing.Do(func() { close(f.pass) }) }
