package transport

// The state of one connection, and the order of its bytes and receivers.
// Invariant: each command appended to a connection gets exactly one Reply, from
// the goroutine that reads and in the order of Append, even if the connection
// breaks.

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/fifo"
	"github.com/quorate/quorate/internal/resp"
)

// conn is one connection of the link. It begins after the handshake and ends in
// four steps, each exactly once: fail marks it; run closes the socket; the
// writer and the reader end; the reader settles the unanswered commands.
//
// The fields above asked are set before start and do not change later, except
// for rd, items and spent, which belong to the goroutine that reads.
type conn struct {
	nc      net.Conn
	rd      *resp.Reader
	batcher Batch
	info    *Info
	greeted bool // Hello was called
	slotted bool // the connection goes to a slot of a cluster
	noVote  bool // Vote commands are not sent: see Config.Votes

	items []Command // the items of a batch
	spent []entry   // the entries of the last batch, for reuse

	asked atomic.Bool // a caller wanted to read by itself

	wake chan struct{} // for the writer: there may be something to write
	dead chan struct{} // closed by fail
	done chan struct{} // closed when everything is settled

	// Guarded by Ordered.mu.
	out        []byte // appended, not yet written
	spare      []byte // the other buffer
	writing    bool   // a goroutine is in nc.Write; only one may be
	unanswered fifo.Queue[entry]
	batch      batch     // comes after unanswered; not written yet
	spares     [][]entry // buffers for the next batches
	pending    int       // unanswered commands, counting each item of a batch
	window     window    // limits pending
	answers    uint64    // how many answers have arrived
	bytes      int       // encoded size of the unanswered commands
	cause      error     // why the connection is dead
	reading    reading
	replaced   bool // ended by Reconnect
	served     bool // a command other than the transport's own has been answered

	refusedAt time.Duration // when the node refused the SUBSCRIBE, since Ordered.epoch; 0: never
}

// skips reports whether c does not get a command, because the node has no vote.
func (c *conn) skips(cmd Command) bool {
	if !c.noVote {
		return false
	}
	_, is := cmd.(Vote)
	return is
}

// entry is a command that waits for its answer. RESP has no ids: only the order
// of the entries says which command an answer belongs to. Times are since
// Ordered.epoch.
type entry struct {
	cmd   Command
	batch []entry       // the items, if it is a batch; then cmd is nil
	at    time.Duration // when it was sent
	until time.Duration // when a Lasting command is obsolete; 0: it is not Lasting
	size  int32         // encoded bytes
	own   bool          // the transport's own command
	alone bool          // nothing was unanswered before it
}

// batch holds commands that have been appended and may still become one. The
// first one is also encoded on its own, and is sent that way if no other joins
// it before the write. Ordered.mu guards it.
// Invariant: while a batch is open, nothing else is appended to conn.out. Any
// other append closes it first, so that the bytes and the queue of receivers
// have one order.
type batch struct {
	entries       []entry
	kind          uint64
	keys, args    []byte
	nKeys, nArgs  int
	first, length int // where the first one is in conn.out
}

// reading tracks who reads: the reader goroutine or a caller. Ordered.mu guards
// it.
type reading struct {
	resting bool          // the reader goroutine does not read
	caller  bool          // a caller reads, while the reader goroutine rests
	cut     bool          // the caller's turn is over, so its read must end
	turns   uint          // how often callers have read
	not     time.Duration // no caller may read before this time, since Ordered.epoch
	pause   time.Duration // the last such pause; 0: the last caller got its answer in time
	look    chan struct{} // tells the reader goroutine to check whether it should read; capacity 1
}

const (
	keepBuffer = 256 << 10 // a write buffer above this size is not kept
	maxSpares  = 64        // of 2 kB each
)

// enter queues the receiver for the bytes that were appended to out. Called
// with Ordered.mu held.
// Invariant: out ends with the bytes of e, and no other receiver is queued for
// them.
func (c *conn) enter(e entry) {
	c.bytes += int(e.size)
	c.unanswered.Push(e)
}

// unwritten reports whether there is something to write. Called with Ordered.mu
// held.
func (c *conn) unwritten() bool { return len(c.out) > 0 || len(c.batch.entries) > 0 }

// wakeWriter makes the writer check for work. It never blocks.
func (c *conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default: // it is awake, or about to wake
	}
}
