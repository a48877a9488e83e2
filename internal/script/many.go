package script

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// AppendMany appends the EVALSHA that does several joins, beats and leaves in one
// request, see scripts/many.lua, given what AppendPart has made of them.
func AppendMany(dst []byte, prefix string, guard time.Duration, keys, args []byte, nKeys, nArgs int) []byte {
	dst = resp.AppendArray(dst, 3+1+nKeys+1+nArgs)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, many.SHA)
	dst = resp.AppendInt(dst, int64(1+nKeys))
	dst = resp.AppendString(dst, MarkerKey(prefix))
	dst = append(dst, keys...)
	dst = resp.AppendInt(dst, guard.Milliseconds())
	return append(dst, args...)
}

// AppendPart appends what r adds to the keys and arguments of many, and says
// how many words these are: none if r is nothing for it. The owner is the channel for pushes.
func AppendPart(keys, args []byte, k Keys, t *protocol.Terms, owner string, retention time.Duration, r protocol.Request) (ks, as []byte, nKeys, nArgs int) {
	kinds := "jbl"
	if t.Capacity == 1 {
		kinds = "JBL"
	}
	var what string
	switch {
	case t.Counting || r.List:
		return keys, args, 0, 0
	case r.Op == protocol.OpJoin:
		what = kinds[:1]
	case r.Op == protocol.OpBeat:
		what = kinds[1:2]
	case r.Op == protocol.OpLeave:
		what = kinds[2:]
	default:
		return keys, args, 0, 0
	}
	keys = k.appendOurs(k.appendPlain(keys), "")
	var id [2 * len(t.ID)]byte
	hex.Encode(id[:], t.ID[:])
	args = resp.AppendBytes(resp.AppendString(args, what), id[:])
	args = resp.AppendInt(args, (t.TTL + retention).Milliseconds())
	if r.Op == protocol.OpLeave {
		return keys, args, 2, 3
	}
	args = resp.AppendInt(args, t.TTL.Milliseconds())
	args = resp.AppendUint(args, uint64(r.Ticket))
	if r.Op == protocol.OpBeat {
		return keys, args, 2, 5
	}
	var buf [160]byte // of one claim: see open.lua
	b := strconv.AppendUint(append(buf[:0], 'S'), uint64(r.Ticket), 10)
	b = append(append(append(b, ' '), id[:]...), ' ')
	b = strconv.AppendUint(b, t.Capacity, 10)
	b = append(append(append(b, ' '), id[:]...), ' ')
	b = append(strconv.AppendUint(b, uint64(r.Ticket), 10), ' ')
	b = append(strconv.AppendUint(b, t.Weight, 10), ' ')
	args = resp.AppendBytes(args, b)
	b = append(buf[:0], " 2 "...)
	if t.Notify {
		b[1] = '3'
	}
	return keys, resp.AppendBytes(args, append(b, owner...)), 2, 7
}

// ManyHead is how many values the answer to many begins with.
const ManyHead = 2

// Share appends what a part's own number stands for, after the head of the
// answer: the answer to r by itself, or nothing.
func Share(v, head []resp.Value, own int64, r protocol.Request) []resp.Value {
	switch {
	case own != 1 || len(head) != ManyHead:
		return nil
	case r.Op == protocol.OpLeave:
		return append(v, resp.Value{Int: 1})
	}
	return append(v, head[0], head[1], resp.Value{Int: int64(r.Ticket)}, resp.Value{Int: 1 | 8}) // a vote, and nobody before it
}
