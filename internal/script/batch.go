package script

// This file owns the form of a batch: the joins, beats and leaves of many names
// in one script call, and one number for each in the answer.
// Invariant: an item's answer is a number only where it says no more than the
// usual: a vote, and no claim before it. In any other case the request is sent
// once more by itself.

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// Kind says which requests may go out in one AppendBatch: those with the same
// one. 0: r is nothing for it. Requests of semaphores have no kind: their
// answers carry totals.
func Kind(t *protocol.Terms, r protocol.Request) uint64 {
	if t.Counting || r.List || r.Op != protocol.OpJoin && r.Op != protocol.OpBeat && r.Op != protocol.OpLeave {
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
	var tail [128]byte
	t := strconv.AppendUint(append(tail[:0], ' '), 2+kind%2, 10)
	dst = resp.AppendBytes(dst, append(append(t, ' '), owner...))
	return append(dst, args...)
}

// AppendItem appends what r, which must be of a kind, adds to the keys and
// arguments of many, and says how many words these are.
// Invariant: what a state begins with is, byte for byte, what the scripts store
// for a claim that is alone. A beat of a batch compares it with what is stored.
func AppendItem(keys, args []byte, k Keys, t *protocol.Terms, r protocol.Request) (ks, as []byte, nKeys, nArgs int) {
	kinds := "jbl"
	if t.Capacity == 1 && tagOf(k.prefix) == "" {
		kinds = "JBL"
	}
	keys = k.appendOurs(k.appendPlain(keys), "")
	if r.Op == protocol.OpLeave {
		args = resp.AppendString(args, kinds[2:])
		return keys, resp.AppendBytes(args, hex.AppendEncode(make([]byte, 0, 2*len(t.ID)), t.ID[:])), 2, 2
	}
	var buf [160]byte // of one claim: see open.lua
	b := strconv.AppendUint(append(buf[:0], 'S'), uint64(r.Ticket), 10)
	ticket := b[1:]
	b = hex.AppendEncode(append(b, ' '), t.ID[:])
	id := b[len(b)-2*len(t.ID):]
	b = append(k.capacity(append(b, '+'), t.Capacity), ' ')
	b = append(strconv.AppendUint(b, t.Weight, 10), ' ')
	if r.Op == protocol.OpBeat {
		args = resp.AppendBytes(resp.AppendString(args, kinds[1:2]), id)
		return keys, resp.AppendBytes(args, b), 2, 3
	}
	args = resp.AppendBytes(resp.AppendString(args, kinds[:1]), id)
	args = resp.AppendBytes(args, ticket)
	return keys, resp.AppendBytes(args, b), 2, 4
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
