package script

// This file owns the form of a batch: the joins, beats and leaves of many names
// in one script call, and one number for each in the answer.
// Invariant: an item's answer is a number only where it says no more than the
// usual: a vote, and no claim before it. In any other case the request is sent
// once more by itself.

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// Kind says which requests may go out in one AppendBatch: those with the same
// one. 0: r is nothing for it. Requests of semaphores have no kind: their
// answers carry totals.
func Kind(t *protocol.Terms, r protocol.Request) uint64 {
	// The scripts take a claim with a redlock key for one of weight 1.
	if t.Counting || r.List || t.Capacity == 1 && t.Weight != 1 || r.Op != protocol.OpJoin && r.Op != protocol.OpBeat && r.Op != protocol.OpLeave {
		return 0
	}
	kind := uint64(t.TTL.Milliseconds()) * 2
	if t.Notify {
		kind++
	}
	return kind
}

// AppendBatch appends the EVALSHA that does several joins, beats and leaves of
// one kind in one request, see scripts/batch.lua, given what AppendItem has
// made of them. The owner is the channel for pushes. The link calls it with its
// lock held, so it must not block.
func AppendBatch(dst []byte, marker string, guard, retention time.Duration, owner string, kind uint64, keys, args []byte, nKeys, nArgs int) []byte {
	dst = resp.AppendArray(dst, 3+1+nKeys+4+nArgs)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, built().batch.SHA)
	dst = resp.AppendInt(dst, int64(1+nKeys))
	dst = resp.AppendString(dst, marker)
	dst = append(dst, keys...)
	dst = resp.AppendInt(dst, guard.Milliseconds())
	dst = resp.AppendInt(dst, int64(kind/2))
	dst = resp.AppendInt(dst, int64(kind/2)+retention.Milliseconds())
	return append(appendTail(dst, kind%2 == 1, owner), args...)
}

// AppendItem appends what r, which must be of a kind, adds to the keys and
// arguments of many, and says how many words these are.
// Invariant: what a state begins with is, byte for byte, what the scripts store
// for a claim that is alone. A beat of a batch compares it with what is stored.
func AppendItem(keys, args []byte, k Keys, t *protocol.Terms, r protocol.Request) (ks, as []byte, nKeys, nArgs int) {
	var buf [lifeSize]byte
	l, one := newLife(buf[:0], k, t, r.Ticket), isOne(k, t)
	keys = k.appendOurs(k.appendPlain(keys), "")
	switch {
	case r.Op == protocol.OpLeave && one:
		return keys, resp.AppendBytes(args, l.fence()), 2, 1
	case r.Op == protocol.OpLeave:
		return keys, resp.AppendBytes(resp.AppendString(args, "l"), l.fence()), 2, 2
	case r.Op == protocol.OpBeat && one:
		args = resp.AppendBytes(args, l.text[l.plus-idSize:l.plus+1])
		return keys, resp.AppendBytes(args, l.text), 2, 2
	case r.Op == protocol.OpBeat:
		return keys, resp.AppendBytes(resp.AppendString(args, "b"), l.text), 2, 2
	case one:
		return keys, resp.AppendBytes(resp.AppendBytes(args, l.id()), l.ticket()), 2, 2
	}
	args = resp.AppendBytes(resp.AppendString(args, "j"), l.ticket())
	return keys, resp.AppendBytes(args, l.text), 2, 3
}

// BatchHead is how many values the answer to a batch begins with.
const BatchHead = 2

// ReplyItem never makes up a refusal: 0 says that the node did nothing for the
// item, so the request may be sent again as it was. It appends what an item's
// own number stands for, after the head of the answer: the answer to r by
// itself, or nothing. The values are those that [Decode] reads, so the caller
// of a batch has one way to take an answer.
func ReplyItem(v, head []resp.Value, own int64, r protocol.Request) []resp.Value {
	switch {
	case own != 1 || len(head) != BatchHead:
		return nil
	case r.Op == protocol.OpLeave:
		return append(v, resp.Value{Int: 1})
	}
	return append(v, head[0], head[1], resp.Value{Int: int64(r.Ticket)}, resp.Value{Int: 1 | 8}) // a vote, and no claim before it
}
