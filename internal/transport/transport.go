// Package transport carries commands to one node, and the node's answers and
// pushes back to their owner. It knows neither what a command asks for nor the
// format of its answer.
//
// [Ordered] is a connection to a Redis server. Package internal/testkit/memory
// has a node inside the test process. Both pass TestTransports.
package transport

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/resp"
)

// Transport is the path to one node. It connects on its own, and reconnects
// when a connection breaks. It is safe for concurrent use.
//
// Invariant: the node carries out commands in the order of Append. After a
// connection breaks, the node may still carry out commands that it had not yet
// read from it; see Lasting. Each command that was taken or refused gets
// exactly one Reply.
type Transport interface {
	// Append takes a command if there is room for it. It neither blocks nor
	// calls Reply, so the caller may hold a lock that Reply takes. A command
	// that was taken may be sent at once, and is sent by the next Flush at the
	// latest.
	Append(cmd Command, u Urgency) Fate
	// Flush sends what Append has taken. The caller must not hold a lock for
	// which another goroutine would wait long: Flush may write to a socket.
	Flush()
	// Read lets the caller read the node's answers until there is something in
	// the channel, if nobody else needs to read. It returns within milliseconds
	// in any case. The caller must hold no lock that a Reply takes.
	Read(until <-chan struct{})
	// State returns the transport's state. now is needed for Waiting alone.
	State(now time.Time) State
	// Reconnect ends the connection and opens another one, because the node has
	// changed since this one began.
	Reconnect(cause error)
	// Close waits until the node has answered everything, but not longer than
	// ctx. The rest gets ErrClosed. When Close returns, no goroutine of the
	// transport is left, unless a cluster client hangs, and no Reply will be
	// called, except for commands appended after Close. The error says how many commands were left unanswered.
	Close(ctx context.Context) error
}

// Urgency says whether a command may have to wait for room.
type Urgency uint8

const (
	Normal  Urgency = iota // there is room as long as the node answers in time
	Urgent                 // has a reserve of room, so that it need not wait behind normal commands
	Certain                // never waits for room: it is taken or refused
)

// Fate is what Append did with a command.
type Fate uint8

const (
	Taken   Fate = iota // sent by the next Flush at the latest
	Refused             // there is no connection: Reply gets the error, the node never gets the command
	Full                // not taken: the node is busy. Config.Room says when to try again
)

// State is the state of a transport.
type State struct {
	Err     error         // nil while connected, otherwise the error that commands get
	Info    *Info         // what the node reported when the latest connection opened; never nil
	Waiting time.Duration // how long the oldest command has been unanswered; 0 if there is none
	NoVote  bool          // Vote commands get ErrNoVote
	Busy    bool          // more commands are unanswered than one caller usually has
}

// Command is one request. The transport calls both methods. They must not
// block, end their goroutine or call Close. Append must not call the transport at all, because it
// runs under the transport's lock. Reply may call Append and Flush.
type Command interface {
	// Append adds the encoded command to dst. It is called once, during Append,
	// or, for a Lasting command, once for each connection it is sent on.
	Append(dst []byte) []byte
	// Reply is called exactly once. err is a resp.Error when the node answered
	// with one; otherwise it wraps ErrDown, ErrBroken or ErrClosed. The values
	// are valid until Reply returns.
	Reply(v []resp.Value, err error)
}

// Lasting is a Command that must reach the node even if the connection breaks.
// While the transport is down, the command waits. If it was unanswered when the
// connection broke, it is sent again on the next one, before anything newer. So
// it must be safe to execute twice.
type Lasting interface {
	Command
	// Until is when delivering the command is no longer useful. The zero time
	// means that it is never sent again.
	Until() time.Time
}

// Vote is a Command that is only for a node with a vote: see Config.Votes.
type Vote interface {
	Command
	NeedsVote()
}

// Batch sends several commands as one. Append runs under the transport's lock
// and must not block. Only one batch at a time uses its methods.
type Batch interface {
	// Append encodes the command, given the items' kind, their keys and
	// arguments, and how many words these are.
	Append(dst []byte, kind uint64, keys, args []byte, nKeys, nArgs int) []byte
	// Reply takes the place of the items' Reply. The values and the list of
	// items are valid until it returns; v and err are as for [Command].
	Reply(items []Command, v []resp.Value, err error)
}

// BatchItem is a Command that may be sent in a Batch.
type BatchItem interface {
	Command
	// Kind says which commands can share a batch: those of the same kind. A
	// command of kind 0 is always sent on its own.
	Kind() uint64
	// AppendItem appends the command's keys and arguments, each an encoded
	// word, and returns how many there are. It is called during Append, under
	// the same conditions.
	AppendItem(keys, args []byte) (k, a []byte, nKeys, nArgs int)
}

// Config does not change during the life of an Ordered. All functions must be
// set, except where the comment says otherwise. They are called from the
// transport's goroutines, and must not block, end their goroutine or call
// Close.
type Config struct {
	Slot     string // for a cluster: a key of the slot whose master to connect to
	Unlisted bool   // the user did not give this address, so errors suggest no other URL

	NodeTimeout time.Duration // how long a healthy node may take to answer; default 200 ms
	// The connection ends if the node owes answers and sends none for this
	// long; default 10 NodeTimeouts, at least 2 s.
	Stall      time.Duration
	MaxPending int // more unanswered commands than this break the connection; default 65536
	MaxBytes   int // more bytes of unanswered commands than this break it too; default 16 MiB

	// Room is called when there is room again after a command found none. It is
	// also called when such a command may have become obsolete.
	Room func()
	// Alone reports that no caller waits for a push. It is called before the
	// reader goroutine rests: see Transport.Read.
	Alone func() bool

	// Probe returns the queries that each connection begins with, besides the
	// transport's own. They must change nothing on the node. An error as the
	// answer to one of them does not fail the connection.
	Probe func() []Command
	// Hello returns the first commands that may change something on the node.
	// It is called once Probe's queries are answered, and its commands are sent
	// before anything else. The connection fails if Hello returns an error or
	// if the node answers one of the commands with an error. Without commands,
	// the handshake is complete after one round trip.
	Hello func(Info) ([]Command, error)
	// Votes reports whether the connection that Hello was called for gets Vote
	// commands. If not, they are treated as if it were not there, with the error
	// ErrNoVote. Nil means that it does.
	Votes func() bool
	// HelloFailed is called if the connection fails between Hello and Up. Down
	// is not called for it.
	HelloFailed func()

	Batch Batch           // nil: every command is sent on its own
	Up    func()          // called when connected; alternates with Down
	Down  func(err error) // the connection broke, or the very first attempt failed

	Channel    string // the channel to subscribe; empty: none
	Subscribed func() // called on every subscription: earlier messages are lost
	// Called when the subscription ended or was refused; alternates with
	// Subscribed.
	PushDown func(err error)
	Push     func(payload string) // one message of Channel
}

func (c *Config) setDefaults() {
	if c.NodeTimeout <= 0 {
		c.NodeTimeout = 200 * time.Millisecond
	}
	if c.Stall <= 0 {
		c.Stall = max(10*c.NodeTimeout, 2*time.Second)
	}
	if c.MaxPending <= 0 {
		c.MaxPending = 65536
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 16 << 20
	}
}

// Info is what a node reported about itself when the connection opened. A field
// is zero if the node lacks the command or forbids it.
type Info struct {
	Addr        string     // the server's address, as in the client's options or as its cluster reports it
	RunID       string     // changes if the process is restarted
	NoInfo      resp.Error // the answer that lacked RunID; empty if RunID is set
	Version     string
	Role        string // "master", "slave" or "sentinel"
	Master      string // of a replica: its master's address
	AOFEnabled  bool
	FsyncAlways bool // appendfsync is always; counts only with AOFEnabled
	Rewriting   bool // the append-only file is being rewritten
	// Part of the replication id of the master that it replicated earlier in
	// this run; empty if it was not a replica.
	Former    string
	Eviction  string        // maxmemory-policy
	Protocol  int           // 3: pushes arrive on this connection; 2: on one of their own
	RoundTrip time.Duration // the round trip of the first command
}

// Run identifies the data in the server's memory: as long as Run stays the same,
// no restart and no replication has replaced the data. A client tells the node its run when it connects.
// If the node's marker does not name that run, the node begins a new
// incarnation: see script.Marker.Names.
//
// RunID alone is not enough. It changes when the process restarts, but not when
// a replication replaces the data with another master's. For example, a server
// with RunID r is a replica of another master for a minute, and then a master
// again. It has lost whatever that master did not have. RunID is still r, but
// Former has changed, so Run is "r+" and Former.
//
// Run is empty if the server does not tell its RunID.
func (i *Info) Run() string {
	if i.RunID == "" || i.Former == "" {
		return i.RunID
	}
	return i.RunID + "+" + i.Former
}

// The errors that a Command's Reply gets besides resp.Error; each comes wrapped
// together with its cause.
var (
	ErrDown   = errors.New("not connected")                     // never sent
	ErrNoVote = errors.New("the node has no vote")              // never sent
	ErrBroken = errors.New("connection broke before an answer") // outcome unknown
	ErrClosed = errors.New("connection closed")                 // not sent, or outcome unknown
)

// Causes of a connection's end, or of a refusal, that are our own decision.
// Replies see them wrapped in one of the errors above.
var (
	errStalled  = errors.New("no answer for too long")
	errOverflow = errors.New("too many unanswered commands")
	errUnasked  = errors.New("an answer that no command asked for: the server is not Redis, or a proxy " +
		"mixes up connections")
	errMisplaced   = errors.New("an answer to a different command: a proxy may send answers out of order")
	errMoved       = errors.New("there is a new master")
	errExited      = errors.New("the client's provider of credentials, or its Dialer, called runtime.Goexit")
	errConnecting  = errors.New("still connecting")
	errExpired     = errors.New("not delivered in time")
	errAOFNotReady = errors.New("was a replica and is not writing to its append-only file yet")
)
