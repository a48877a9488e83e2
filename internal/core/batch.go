package core

import (
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// This file owns what several requests of claims are sent as: one script call.
// The transport decides which go together, and script how the call looks.
// Invariant: each request of a batch gets its own answer. If the batch has none
// for it, the request is sent once more, by itself.

// batch is the transport.Batch of one node. Its Reply is not safe for
// concurrent use: only the reader of the node's answers calls it.
type batch struct {
	q      *Quorum
	values []resp.Value  // of an answer that is a text
	own    [4]resp.Value // of one request
}

// The link calls Append with its lock held.
func (b *batch) Append(dst []byte, kind uint64, keys, args []byte, nKeys, nArgs int) []byte {
	n := b.q.members.named.Load()
	return script.AppendBatch(dst, n.home.Marker(b.q.set.Prefix), n.guard, n.retention, b.q.channel, kind, keys, args, nKeys, nArgs)
}

// Reply gives each request its answer. It runs on the reader's goroutine.
func (b *batch) Reply(items []transport.Command, v []resp.Value, err error) {
	v = resp.Numbers(b.values, v)
	if err != nil || len(v) != script.BatchHead+len(items) {
		for _, c := range items {
			c.(*call).sendAlone(false, err)
			err = nil // it concerns the script, so to load the script once is enough
		}
		return
	}
	head := v[:script.BatchHead]
	for _, c := range items {
		c.(*call).a.touch()
	}
	for i, c := range items {
		c := c.(*call)
		if own := script.ReplyItem(b.own[:0], head, v[script.BatchHead+i].Int, c.req); own != nil {
			c.Reply(own, nil)
		} else {
			c.sendAlone(true, nil)
		}
	}
}

// sendAlone sends a request of a batch once more, by itself. contended says
// that the node has more to say than a batch has room for. A node that carries
// out a join, a beat or a settle twice has the same claim as after one.
func (c *call) sendAlone(contended bool, err error) {
	a := c.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if contended {
		a.spec.shared.Meet(true)
	}
	if c.alone = true; !c.again(forgotten(err)) {
		c.free()
	}
}
