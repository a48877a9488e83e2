package transport

// How commands are appended, and how several become one. Most of the cost of a
// short script is the same whatever the script does. So if many callers are
// active (see busyThreshold), the commands of one write are combined into one
// command.
// Invariant: commands stay in the order of Append, and no command waits for
// others to join it, except at a distant node: see farAway.

import (
	"time"

	"github.com/quorate/quorate/internal/resp"
)

// MaxBatch bounds how long a node is busy with one command.
const MaxBatch = 32

// busyThreshold is the most commands that a single caller usually has
// unanswered. With more, other callers must be active, and the writer sends
// everyone's commands in one write.
const busyThreshold = 4

// push queues a command for writing and queues the receiver of its answer in
// one step, so that bytes and receivers have the same order. Called with
// Ordered.mu held. It never blocks: it only copies bytes into a buffer.
func (c *conn) push(cmd Command, until, now time.Duration) {
	if c.addToBatch(cmd, until, now) {
		return
	}
	c.closeBatch()
	start := len(c.out)
	c.out = cmd.Append(c.out)
	c.enter(entry{cmd: cmd, at: now, until: until, size: int32(len(c.out) - start), alone: c.pending == 0})
	c.pending++
}

// pushOwn queues a command of the transport itself. Neither Close nor
// State.Busy counts it.
func (c *conn) pushOwn(cmd Command, now time.Duration) {
	c.closeBatch()
	start := len(c.out)
	c.out = cmd.Append(c.out)
	c.enter(entry{cmd: cmd, at: now, size: int32(len(c.out) - start), alone: c.unanswered.Len() == 0,
		own: true})
}

// addToBatch adds a command to the batch, or returns false if it must be sent
// on its own. Commands that are not items are sent on their own. So are all
// commands while few are in flight: there is usually nothing to combine, and an
// item would be encoded twice for nothing.
func (c *conn) addToBatch(cmd Command, until, now time.Duration) bool {
	item, ok := cmd.(BatchItem)
	if !ok || c.batcher == nil || c.pending < busyThreshold {
		return false
	}
	p, kind := &c.batch, item.Kind()
	if kind == 0 {
		return false
	}
	if len(p.entries) == MaxBatch || kind != p.kind {
		c.closeBatch()
	}
	keys, args, nk, na := item.AppendItem(p.keys, p.args)
	p.kind, p.keys, p.args = kind, keys, args
	p.nKeys, p.nArgs = p.nKeys+nk, p.nArgs+na
	switch len(p.entries) {
	case 0:
		p.first = len(c.out)
		c.out = cmd.Append(c.out)
		p.length = len(c.out) - p.first
	case 1:
		// A second item has come: remove the first one's own encoding again.
		c.out = c.out[:p.first]
	}
	if p.entries == nil {
		p.entries = make([]entry, 0, MaxBatch)
	}
	p.entries = append(p.entries, entry{cmd: cmd, at: now, until: until})
	c.pending++
	return true
}

// closeBatch ends the batch: whatever is appended next comes after it. The
// batch gets the time of its oldest item, so that State and Stall see the
// longest wait.
func (c *conn) closeBatch() {
	p := &c.batch
	switch n := len(p.entries); n {
	case 0:
		return
	case 1:
		e := p.entries[0]
		e.size = int32(p.length)
		c.enter(e)
	default:
		start := len(c.out)
		c.out = c.batcher.Append(c.out, p.kind, p.keys, p.args, p.nKeys, p.nArgs)
		c.enter(entry{at: p.entries[0].at, batch: p.entries, size: int32(len(c.out) - start)})
		p.entries = nil // the reader owns them now
		if k := len(c.spares); k > 0 {
			p.entries, c.spares = c.spares[k-1], c.spares[:k-1]
		}
	}
	clear(p.entries)
	*p = batch{entries: p.entries[:0], keys: p.keys[:0], args: p.args[:0]}
}

// replyBatch passes the answer to a batch to its owner. Only the reader calls
// it, so items is reused without a lock. It is cleared afterwards: an idle
// connection must not keep the last 32 commands and their claims alive.
func (c *conn) replyBatch(entries []entry, v []resp.Value, err error) {
	items := c.items[:0]
	for _, e := range entries {
		items = append(items, e.cmd)
	}
	c.batcher.Reply(items, v, err)
	clear(items)
	c.items = items
}
