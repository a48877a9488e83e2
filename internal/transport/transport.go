// Package transport carries commands to one node, and to their owner what the
// node answers and pushes. It knows neither what a command asks for nor the
// form of its answer.
//
// [Ordered] is a connection to a Redis server. Package internal/testkit/memory
// has a node in the process of a test. Both pass TestTransports.
package transport

import (
	"context"
	"time"
)

// Transport is the way to one node. It connects by itself, and again when a
// connection breaks. It is safe for concurrent use.
//
// Invariant: the node carries out commands in the order of Append, also across
// connections. Each command that was taken or refused gets exactly one Reply.
type Transport interface {
	// Append takes a command if there is room for it. It neither blocks nor
	// calls Reply, so the caller may hold a lock that Reply takes. What Append
	// takes may be sent at once, and is sent with the next Flush at the latest.
	Append(cmd Command, u Urgency) Fate
	// Flush sends what Append has taken. The caller must not hold a lock for
	// which another goroutine would wait long: Flush may write to a socket.
	Flush()
	// Read has the caller read what the node answers until something lies in
	// the channel, if there is nothing else to read for. It returns within
	// milliseconds in any case. The caller holds no lock that a Reply takes.
	Read(until <-chan struct{})
	// State returns how the transport stands at the given time.
	State(now time.Time) State
	// Reconnect gives the connection up and opens another: the node is not what
	// it was when this one began.
	Reconnect(cause error)
	// Close waits until the node has answered everything, but not longer than
	// ctx. The rest gets ErrClosed. When Close returns, no goroutine of the
	// transport is left and no Reply will be called, save for commands appended
	// after Close. The error says how many commands remained unanswered.
	Close(ctx context.Context) error
}

// Urgency says whether a command may have to wait for room.
type Urgency uint8

const (
	Normal  Urgency = iota // it finds room while the node answers in time
	Urgent                 // it has a reserve of room, so that it does not wait behind those that may wait
	Certain                // it is not counted: it is taken, or refused
)

// Fate is what became of a command.
type Fate uint8

const (
	Taken   Fate = iota // it is sent with the next Flush at the latest
	Refused             // there is no connection: Reply gets the error, the node never gets the command
	Full                // it is not taken: the node has enough to do. Config.Room tells when to try again
)

// State is how a transport stands.
type State struct {
	Err     error         // nil while it is connected, else what commands get
	Info    *Info         // what the node said when the latest connection opened; never nil
	Waiting time.Duration // for how long the oldest command has been unanswered; 0: there is none
	Busy    bool          // more is unanswered than one caller has, in the usual case
}
