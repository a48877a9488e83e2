package script

// The format of a batch: joins, beats and leaves of many names in one script
// call. The answer has one number for each item.
// Invariant: an item's answer is a number only in the usual case, a vote with
// no claim ahead. In any other case the client sends the request again on its
// own.

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// Kind returns the kind of a request. Requests of the same kind can share a
// batch. Kind 0 means that the request cannot be batched. Requests of
// semaphores cannot, because their answers carry totals.
func Kind(t *protocol.Terms, r protocol.Request) uint64 {
	// The batch script assumes weight 1 for a claim with a redlock key.
	if t.Counting || r.List || t.Capacity == 1 && t.Weight != 1 || r.Op != protocol.OpJoin &&
		r.Op != protocol.OpBeat && r.Op != protocol.OpLeave {
		return 0
	}
	kind := uint64(t.TTL.Milliseconds()) * 2
	if t.Notify {
		kind++
	}
	return kind
}

// AppendBatch appends the EVALSHA that performs several joins, beats and leaves
// of one kind; see scripts/batch.lua. keys and args come from AppendItem. owner
// is the channel for pushes. The link calls it with its lock held, so it must
// not block.
func AppendBatch(
	dst []byte, marker string, guard, retention time.Duration, owner string,
	kind uint64, keys, args []byte, nKeys, nArgs int,
) []byte {
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

// AppendItem appends the keys and arguments of r, which must have a kind, and
// returns how many words it added.
// Invariant: the beginning of the state is, byte for byte, what the scripts
// store for a claim that is alone. A beat in a batch compares it with the
// stored state.
func AppendItem(keys, args []byte, k Keys, t *protocol.Terms, r protocol.Request) (
	ks, as []byte, nKeys, nArgs int,
) {
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

// BatchHead is the number of values before the items in the answer to a batch.
const BatchHead = 2

// ReplyItem expands an item's number into the answer that r would have received
// on its own, and appends it to v. The values have the format that [Decode]
// reads, so the caller needs only one way to handle answers. head is the head
// of the batch's answer. ReplyItem returns nil unless the number is 1. Any
// other number is not a refusal: the node did nothing for the item, and the
// request may be sent again unchanged.
func ReplyItem(v, head []resp.Value, own int64, r protocol.Request) []resp.Value {
	switch {
	case own != 1 || len(head) != BatchHead:
		return nil
	case r.Op == protocol.OpLeave:
		return append(v, resp.Value{Int: 1})
	}
	// The answer is a vote with no claim ahead.
	return append(v, head[0], head[1], resp.Value{Int: int64(r.Ticket)}, resp.Value{Int: 1 | 8})
}
