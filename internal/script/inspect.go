package script

// This file owns the view of a name for an onlooker: the request, and the
// reading of its answer.
// Invariant: a look changes nothing on the node: no marker, no vote, no lease
// that has ended.

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// Queue is one node's state of a name.
type Queue struct {
	Fence    protocol.Ticket
	Queued   int           // claims, also those not in Claims
	Voted    int           // of these: claims that the node votes for
	Capacity uint64        // 0: no claim is queued
	Foreign  time.Duration // what is left of a redlock key that another client holds; 0: none
	Memory   time.Duration // how far back the node remembers; 0 while it may have forgotten a lease
	Claims   []Claim
	Evicted  Evicted
}

// Evicted is what a node says of the claim that an operator evicts.
type Evicted struct {
	Left  time.Duration // of its lease; 0: it is not here
	Voted bool          // the node votes for it, and has said so
	Heard int           // to so many clients
}

type Claim struct {
	ID     string
	Ticket protocol.Ticket
	Weight uint64
	Left   time.Duration // of its lease
	Voted  bool
	Owner  string // the channel of its process
}

// AppendInspect appends the EVALSHA that lists up to most claims of a name, and
// tells the owner of the claim with a ticket that an operator evicts it. 0: it
// tells no owner.
func AppendInspect(dst []byte, k Keys, most int, evict protocol.Ticket) []byte {
	dst = resp.AppendArray(dst, 3+5+2)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, built().inspect.SHA)
	dst = k.appendClaims(dst, 5)
	dst = resp.AppendInt(dst, int64(most))
	return resp.AppendInt(dst, int64(evict))
}

// DecodeInspect reads the answer to AppendInspect. A node's list ends at a
// bound, so Queued may be more than the claims that follow. It is never less,
// and Voted is never more: an answer that says so is no answer of ours.
func DecodeInspect(v []resp.Value) (Queue, error) {
	const head, each = 8, 6
	bad := func(i int) (Queue, error) {
		return Queue{}, fmt.Errorf("%w: value %d of a queue", ErrAnswer, i)
	}
	if len(v) < head || (len(v)-head)%each != 0 {
		return bad(len(v))
	}
	for i := range v {
		text := i >= head && ((i-head)%each == 0 || (i-head)%each == each-1)
		if text != (v[i].Str != nil) || !text && (v[i].Int < 0 || v[i].Int >= exact) {
			return bad(i)
		}
	}
	if claims := int64(len(v)-head) / each; v[1].Int < claims {
		return bad(1)
	}
	if v[5].Int > v[1].Int {
		return bad(5)
	}
	q := Queue{
		Fence:    protocol.Ticket(v[0].Int),
		Queued:   int(v[1].Int),
		Foreign:  millis(v[2].Int),
		Memory:   millis(v[3].Int),
		Capacity: uint64(v[4].Int),
		Voted:    int(v[5].Int),
	}
	q.Evicted = Evicted{Left: millis(v[6].Int), Voted: v[7].Int > 0, Heard: int(max(0, v[7].Int-1))}
	for v = v[head:]; len(v) > 0; v = v[each:] {
		q.Claims = append(q.Claims, Claim{
			ID:     string(v[0].Str),
			Ticket: protocol.Ticket(v[1].Int),
			Weight: uint64(v[2].Int),
			Left:   millis(v[3].Int),
			Voted:  v[4].Int == 1,
			Owner:  string(v[5].Str),
		})
	}
	return q, nil
}

// millis is so many milliseconds, or as many as fit.
func millis(n int64) time.Duration { return time.Duration(min(n, maxKeep)) * time.Millisecond }
