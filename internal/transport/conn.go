package transport

// This file owns the state of one connection, and the order of bytes and
// receivers.
// Invariant: each command that was appended to a connection gets exactly one
// Reply, from the goroutine that reads and in the order of Append, also when
// the connection breaks.

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/fifo"
	"github.com/quorate/quorate/internal/resp"
)

// conn is one connection of the link. It begins when the handshake is done and
// ends in four steps, each exactly once: fail marks it; run closes the socket;
// the writer ends, the reader ends; the reader settles the unanswered.
//
// What stands above asked is set before start, and is not changed later, except
// for rd, items and spent: these are of the goroutine that reads.
type conn struct {
	nc      net.Conn
	rd      *resp.Reader
	batcher Batch
	info    *Info
	greeted bool // Hello was called
	slotted bool // it is for a slot of a cluster

	items []Command // those of a batch
	spent []entry   // those of the last batch, to be used again

	asked atomic.Bool // a caller would have read itself

	wake chan struct{} // for the writer: there may be something to write
	dead chan struct{} // closed by fail
	done chan struct{} // closed when everything is settled

	// Guarded by Ordered.mu.
	out        []byte // appended, not yet written
	spare      []byte // the other buffer
	writing    bool   // a goroutine is in nc.Write; only one may be
	unanswered fifo.Queue[entry]
	batch      batch     // sent after those, and not written yet
	spares     [][]entry // of such, for the next
	pending    int       // commands without an answer, the items of a batch counted one by one
	window     window    // how many there may be of those that are offered
	answers    uint64    // how many have come
	bytes      int       // encoded size of the unanswered
	cause      error     // why it is dead
	owed       bool      // answers were missing when it died
	reading    reading
	served     bool // a command has been answered that is not the transport's own

	refusedAt time.Duration // when the node refused the SUBSCRIBE, since Ordered.epoch; 0: it has not

	// While now < resendUntil, Lasting commands are also copied to resend.
	resendUntil time.Duration
	resend      []byte
	resends     int
}

// entry is a command that waits for its answer. RESP has no ids: the order of
// the entries is all that says which command an answer belongs to. Times are
// since Ordered.epoch.
type entry struct {
	cmd   Command
	batch []entry       // the items of which it is made, instead of cmd
	at    time.Duration // when it was sent
	until time.Duration // Lasting; 0: not
	size  int32         // encoded bytes
	own   bool          // of the transport
	alone bool          // nothing was unanswered before it
}

// batch are commands that have been appended and may still become one. The
// first is encoded by itself, too: it stays that when no other comes before the
// write. Ordered.mu guards it.
// Invariant: while a batch is open nothing else is appended to conn.out. Each
// other append closes it first, so the bytes and the queue of receivers have
// one order.
type batch struct {
	entries       []entry
	kind          uint64
	keys, args    []byte
	nKeys, nArgs  int
	first, length int // where in conn.out the first one is
}

// reading is the state of the turns. Ordered.mu guards it.
type reading struct {
	resting bool          // the reader goroutine does not
	caller  bool          // a caller does, while that rests
	cut     bool          // the caller has had its time: its read ends
	turns   uint          // how often callers have read
	not     time.Duration // no caller is asked to before that, since Ordered.epoch
	pause   time.Duration // how long that was the last time; 0: the last caller had its answer in time
	look    chan struct{} // the reader goroutine is to look whether it should read; has room for one
}

const (
	keepBuffer = 256 << 10 // a write buffer above this size is not kept
	// Leaves beyond this many bytes are not repeated.
	maxResend = 1 << 20
	maxSpares = 64 // of 2 kB each
)

// enter queues the receiver of what has been appended to out.
// Called with Ordered.mu held.
// Invariant: out ends with the bytes of e, and no other receiver for them is
// queued.
func (c *conn) enter(e entry) {
	c.bytes += int(e.size)
	c.unanswered.Push(e)
}

// unwritten reports whether there is something to write. Ordered.mu is held.
func (c *conn) unwritten() bool { return len(c.out) > 0 || len(c.batch.entries) > 0 }

// wakeWriter makes the writer look for work. It never blocks.
func (c *conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default: // it is awake, or about to wake
	}
}
