// Package transport carries commands to one node, and to their owner what the
// node answers and pushes. It knows neither what a command asks for nor the
// form of its answer.
//
// [Ordered] is a connection to a Redis server. Package internal/testkit/memory
// has a node in the process of a test. Both pass TestTransports.
package transport

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/resp"
)

// Transport is the way to one node. It connects by itself, and again when a
// connection breaks. It is safe for concurrent use.
//
// Invariant: the node carries out commands in the order of Append. What it has
// not read of a connection that broke it may carry out late: see Lasting. Each
// command that was taken or refused gets exactly one Reply.
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

// Command is one request. The transport calls both methods. They must neither
// block nor call Close. Append must not call the transport at all, because it
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

// Lasting is a Command that must reach the node even if the connection breaks:
// while the transport is down it waits, and when it was unanswered as the
// connection broke, it is sent again, before anything newer, on the next one.
// It must bear being executed twice.
type Lasting interface {
	Command
	// Until is when delivering it has lost its sense; the zero time: never sent
	// again.
	Until() time.Time
}

// Batch is how several commands are sent as one. Append runs under the
// transport's lock and must not block. Both are called for one batch at a time.
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
	// Kind says with which others it goes: those of the same kind. 0: it goes
	// by itself.
	Kind() uint64
	// AppendItem appends its keys and arguments, each an encoded word, and says
	// how many. It is called during Append, under the same conditions.
	AppendItem(keys, args []byte) (k, a []byte, nKeys, nArgs int)
}

// Config is fixed for the life of an Ordered. The functions must be set. They
// are called from the transport's goroutines and must neither block nor call
// Close.
type Config struct {
	Slot     string // of a cluster: a key of the slot whose master the connection goes to
	Unlisted bool   // the user has not given the address: no error says how else to give it

	NodeTimeout time.Duration // how long a healthy node may take to answer; default 200 ms
	Stall       time.Duration // a node that owes answers and gives none for so long loses the connection; default 10 NodeTimeouts, at least 2 s
	MaxPending  int           // so many unanswered commands break the connection; default 65536
	MaxBytes    int           // so many bytes of unanswered commands do; default 16 MiB

	// Room is called when there is room again for what did not find any, and
	// when that may have lost its sense meanwhile.
	Room func()
	// Alone reports that no caller waits for a push. It is called before the
	// reader goroutine rests: see Transport.Read.
	Alone func() bool

	// Probe gives the questions that each connection begins with, beside the
	// transport's own. They must change nothing on the node, and an error as
	// answer does not fail the connection.
	Probe func() []Command
	// Hello gives the first commands that may change something. It is called
	// when Probe's are answered. They are sent before anything else. Hello's
	// own error fails the connection, and so does an error as answer to one of
	// its commands. If there are no commands, the handshake has taken one round
	// trip.
	Hello func(Info) ([]Command, error)
	// HelloFailed is called if the connection fails between Hello and Up. Down
	// is not called for it.
	HelloFailed func()

	Batch Batch           // nil: every command goes by itself
	Up    func()          // connected; alternates with Down
	Down  func(err error) // the connection broke, or the very first attempt failed

	Channel    string               // the channel to subscribe; empty: none
	Subscribed func()               // on every subscription: what was published before is lost
	PushDown   func(err error)      // the subscription ended, or was refused; alternates with Subscribed
	Push       func(payload string) // one message of Channel
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

// Info is what a node said about itself when the connection opened. What it
// did not tell, because it lacks the command or forbids it, is zero.
type Info struct {
	Addr        string     // of the server, as the client's options or its cluster name it
	RunID       string     // another one: the process was restarted
	NoInfo      resp.Error // why it does not tell RunID; empty: it tells it
	Version     string
	Role        string // "master", "slave" or "sentinel"
	Master      string // of a replica: the address of its master
	AOFEnabled  bool
	FsyncAlways bool          // appendfsync is always; counts only with AOFEnabled
	Rewriting   bool          // the append-only file
	Former      string        // it was a replica in this run, of that master: a part of its replication id
	Eviction    string        // maxmemory-policy
	Protocol    int           // 3: pushes come on this connection; 2: they have one of their own
	RoundTrip   time.Duration // of the first command
}

// Run names the memory that the server has: that of its process, until another
// master's takes its place. A master that was a replica in between has lost
// what that one did not have.
func (i *Info) Run() string {
	if i.RunID == "" || i.Former == "" {
		return i.RunID
	}
	return i.RunID + "+" + i.Former
}

// The errors a Command's Reply sees beside resp.Error; each comes wrapped
// together with its cause.
var (
	ErrDown   = errors.New("not connected")                     // never sent
	ErrBroken = errors.New("connection broke before an answer") // outcome unknown
	ErrClosed = errors.New("connection closed")                 // not sent, or outcome unknown
)

// Causes of a connection's end, or of a refusal, that are our own decision.
// Replies see them wrapped in one of the errors above.
var (
	errStalled     = errors.New("no answer for too long")
	errOverflow    = errors.New("too many unanswered commands")
	errUnasked     = errors.New("an answer that no command asked for: the server is not Redis, or a proxy mixes up connections")
	errAbandoned   = errors.New("a callback such as the logger ended the goroutine that reads the connection")
	errMisplaced   = errors.New("an answer to a different command: a proxy may send answers out of order")
	errMoved       = errors.New("there is a new master")
	errConnecting  = errors.New("still connecting")
	errExpired     = errors.New("not delivered in time")
	errAOFNotReady = errors.New("was a replica and is not writing to its append-only file yet")
)
