package protocol

// This file owns how urgent a request is, and the words for what becomes of
// one.

// Class is how urgent a request is for a node that cannot take all of them at
// once.
type Class uint8

// The classes, the most urgent first.
const (
	// Certain is what finds room at every time: the connection itself needs it,
	// and it is little. It never waits.
	Certain Class = iota
	// Renewals keep what is held, and leaves let the next claim in. A hold that
	// is not renewed in time is lost, and a leave makes later work possible, so
	// both come before all the rest.
	Renewals
	// Waits keep the places of the claims that wait.
	Waits
	// Joins are new work. A caller that locks can wait for them.
	Joins
	// Records are operations on records. They may be long, and a client that
	// connects again has one for each record that it watches.
	Records
	Classes
)

// Sending is what the runtime does with a request.
type Sending uint8

// The ways.
const (
	Drop Sending = iota // nothing
	Hand                // hand it to the link, if that has room, and tell Departed or Waits
	Wait                // others wait: tell Waits and put it into the backlog
)
