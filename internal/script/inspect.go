package script

// Inspection of a name: the request, and the parser of its answer.
// Invariant: inspecting changes nothing on the node. It writes no marker, gives
// no vote, and removes no expired lease.

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// Queue is one node's state of a name.
type Queue struct {
	Fence    protocol.Ticket
	Queued   int           // all claims, including those not in Claims
	Voted    int           // how many of these the node votes for
	Capacity uint64        // 0: no claim is queued
	Foreign  time.Duration // time left of another library's redlock key; 0 if there is none
	Memory   time.Duration // how far back the node remembers; 0 if it may have forgotten a lease
	Claims   []Claim
	Evicted  Evicted
}

// Evicted is what a node reports about the claim that an operator evicts.
type Evicted struct {
	Left  time.Duration // time left of its lease; 0 if the node does not have the claim
	Voted bool          // the node votes for the claim and has told its client
	Heard int           // how many clients received the message
}

// Claim is one queued claim.
type Claim struct {
	ID     string
	Ticket protocol.Ticket
	Weight uint64
	Left   time.Duration // time left of its lease
	Voted  bool
	Owner  string // the channel of the claim's process
}

// AppendInspect appends the EVALSHA that lists at most most claims of a name.
// It also tells the owner of the claim with ticket evict that an operator
// evicts it, unless evict is 0.
func AppendInspect(dst []byte, k Keys, most int, evict protocol.Ticket) []byte {
	dst = resp.AppendArray(dst, 3+5+2)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, built().inspect.SHA)
	dst = k.appendClaims(dst, 5)
	dst = resp.AppendInt(dst, int64(most))
	return resp.AppendInt(dst, int64(evict))
}

// DecodeInspect parses the answer to AppendInspect. A node's list is truncated,
// so Queued may exceed the number of claims that follow. It is never smaller,
// and Voted never exceeds Queued: otherwise the answer is malformed.
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

// millis converts milliseconds to a Duration, capped at the longest Duration.
func millis(n int64) time.Duration { return time.Duration(min(n, maxKeep)) * time.Millisecond }
