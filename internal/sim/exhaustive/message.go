//go:build search

package exhaustive

import (
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// message is a request, the answer to one, or a push, on its way. It is
// comparable, so a message is known by its number from then on; 0 is none.
type message struct {
	kind kind
	age  uint8 // units since the request was sent; the oldest are all alike

	op      protocol.Op
	ticket  protocol.Ticket // of a join or a settle; of a push
	list    bool
	patient bool

	status       protocol.Status
	inc          protocol.Incarnation
	held         protocol.Ticket
	vote         bool
	wait         int16
	told, listed bool
	sum, digest  uint64
	allSum       uint64
	allDigest    uint64
	lower        uint8 // a set of claims
}

type kind uint8

const (
	request kind = iota + 1
	answer
	push
)

type msgID = uint16

// link is what travels between one claim and one node. Requests and answers
// keep their order; pushes come on a connection of their own, and what a
// failure has hit comes at any time or never: those two are sets.
type link struct {
	requests [6]msgID
	answers  [4]msgID
	pushes   [4]msgID // a fifth is lost
	late     [4]msgID
	cut      bool
	full     bool // the node has no room for requests of the claim
}

// column is a node and its links.
type column struct {
	node  uint32
	links [maxClaims]uint32
}

// add puts m behind the others.
func add(queue []msgID, m msgID) {
	i := slices.Index(queue, 0)
	if i < 0 {
		panic("exhaustive: a link is too narrow for this configuration")
	}
	queue[i] = m
}

// drop removes the i-th message.
func drop(queue []msgID, i int) msgID {
	m := queue[i]
	copy(queue[i:], queue[i+1:])
	queue[len(queue)-1] = 0
	return m
}

// put adds m to a set, the empty places last.
func put(set []msgID, m msgID) {
	add(set, m)
	tidy(set)
}

func tidy(set []msgID) {
	if set[1] == 0 {
		return
	}
	slices.SortFunc(set, func(a, b msgID) int { return int(a-1) - int(b-1) }) // 0 becomes the largest
}

// rewrite replaces every message by f of it, and 0 removes it.
func rewrite(queue []msgID, f func(msgID) msgID) {
	n := 0
	for _, m := range queue {
		if m == 0 {
			break
		}
		if m = f(m); m != 0 {
			queue[n] = m
			n++
		}
	}
	clear(queue[n:])
}

func (l *link) rewrite(f func(m msgID, late bool) msgID) {
	onTime := func(m msgID) msgID { return f(m, false) }
	rewrite(l.requests[:], onTime)
	rewrite(l.answers[:], onTime)
	rewrite(l.pushes[:], onTime)
	rewrite(l.late[:], func(m msgID) msgID { return f(m, true) })
	tidy(l.pushes[:])
	tidy(l.late[:])
}
