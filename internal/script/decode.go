package script

// Parsing of answers and pushes.
// Invariant: no input makes it panic, and whatever it accepts is consistent: no
// flags that exclude each other, no list that exceeds its totals. The state
// machine depends on that. It checks whether an answer is plausible, but never
// its format.

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// ErrAnswer is wrapped by the error of every malformed answer or push. A node
// that sends one counts as a node that did not answer.
var ErrAnswer = errors.New("malformed answer")

// Flags of an answer, its fourth value.
// Invariant: the bits are those of answer.lua, and each later value belongs to
// a flag.
const (
	flagVote    = 1 << iota
	flagWaiters // a claim other than this one has no vote
	flagForeign // only another library's redlock key keeps this claim from getting the vote
	flagTotals  // sum and digest are set
	flagListed  // the totals of all and the lower claims follow; never without flagTotals
	flagLimit   // the number of permits since a Resize and the Resize's ticket follow
	flagBarred  // another library's redlock key keeps the head of the queue from getting the vote
	flagsEnd    // the bits from here on: how many claims are ahead of one without a vote
)

const (
	// exact bounds the numbers that Lua represents exactly.
	exact = int64(1) << 53
	// maxWait bounds a hint to what fits a time.Duration. Guard times and
	// leases are far below it.
	maxWait = int64(protocol.LongestWait / time.Millisecond)
	// maxClock bounds a time in milliseconds to what fits nanoseconds.
	maxClock = int64(1) << 43
)

// Decode parses the answer to a request. Its formats are
//
//	OK         incarnation ticket flags [wait [sum digest [limit since] [sum digest of all] [id weight]…]]
//	Missing    incarnation fence
//	Recovering incarnation wait
//	Clash      incarnation capacity
//	Ahead      incarnation wait
//
// The first value is the status plus 8 times the node's clock. An OK with
// nothing after the wait comes as a single text; see decodeText. Decode never
// panics, whatever the node sent, and keeps no reference to v.
func Decode(v []resp.Value) (protocol.Answer, error) {
	var a protocol.Answer
	var short [6]resp.Value
	var below int64
	if len(v) == 1 && v[0].Str != nil {
		v, below = decodeText(short[:], v)
	}
	if len(v) < 3 {
		return a, fmt.Errorf("%w: %d values", ErrAnswer, len(v))
	}
	plain := min(len(v), 7)
	if len(v) > 8 && v[3].Int&flagLimit != 0 {
		plain = 9
	}
	for i, x := range v[:plain] {
		if x.Str != nil || x.Int < 0 || x.Int >= exact {
			return a, fmt.Errorf("%w: value %d", ErrAnswer, i)
		}
	}
	if v[1].Int == 0 {
		return a, fmt.Errorf("%w: no incarnation", ErrAnswer)
	}
	third := v[2].Int
	a.Status, a.Clock, a.Incarnation = protocol.Status(v[0].Int%8), v[0].Int/8*1000+below,
		protocol.Incarnation(v[1].Int)
	if a.Clock/1000 > maxClock {
		return protocol.Answer{}, fmt.Errorf("%w: clock %d", ErrAnswer, a.Clock/1000)
	}
	switch a.Status {
	case protocol.OK:
		a.Ticket = protocol.Ticket(third)
		return decodeOK(a, v)
	case protocol.Missing:
		a.Ticket = protocol.Ticket(third)
	case protocol.Recovering:
		if third == 0 || third > maxWait {
			return protocol.Answer{}, fmt.Errorf("%w: recovering for %d ms", ErrAnswer, third)
		}
		a.Wait = time.Duration(third) * time.Millisecond
	case protocol.Ahead: // the wait may be as long as tickets reach
		if third == 0 {
			return protocol.Answer{}, fmt.Errorf("%w: ahead by nothing", ErrAnswer)
		}
		a.Wait = time.Duration(min(third, maxWait)) * time.Millisecond
	case protocol.Clash:
		if third == 0 {
			return protocol.Answer{}, fmt.Errorf("%w: capacity 0", ErrAnswer)
		}
		a.Capacity = uint64(third)
	default:
		return protocol.Answer{}, fmt.Errorf("%w: status %d", ErrAnswer, a.Status)
	}
	if len(v) != 3 {
		return protocol.Answer{}, fmt.Errorf("%w: %d values after status %d", ErrAnswer, len(v), a.Status)
	}
	return a, nil
}

// decodeText converts the text form of an OK to the values that Decode reads,
// and returns the microseconds of the clock that its milliseconds leave out.
// values is nil if v is malformed. The text is
//
//	seconds microseconds incarnation ticket flags [wait]
//
// with the time as TIME returns it: converting it to one number would take the
// script longer than the rest of the text.
func decodeText(room, v []resp.Value) (values []resp.Value, below int64) {
	v = resp.Numbers(room, v)
	if len(v) < 5 {
		return nil, 0
	}
	seconds, micros := v[0].Int, v[1].Int
	if seconds < 0 || seconds > maxClock/1000 || micros < 0 || micros >= 1_000_000 {
		return nil, 0
	}
	v = v[1:]
	v[0].Int = (seconds*1000+micros/1000)*8 + int64(protocol.OK)
	return v, micros % 1000
}

// DecodeLeave parses the answer to a leave, which is 1.
func DecodeLeave(v []resp.Value) (protocol.Answer, error) {
	if len(v) != 1 || v[0].Str != nil || v[0].Int != 1 {
		return protocol.Answer{}, fmt.Errorf("%w: leave", ErrAnswer)
	}
	return protocol.Answer{Status: protocol.OK}, nil
}

// decodeOK parses what follows the ticket. The flags say which values follow, so
// they must agree with the number of values. One exception: if nothing comes after
// the wait, all totals are 0, as answer.lua writes them for a claim with capacity 1.
// The first contradiction makes the whole answer malformed, because the answer could
// come from another program; part of an answer is never used.
func decodeOK(a protocol.Answer, v []resp.Value) (protocol.Answer, error) {
	bad := func(what string) (protocol.Answer, error) {
		return protocol.Answer{}, fmt.Errorf("%w: %s", ErrAnswer, what)
	}
	if len(v) < 4 {
		return bad("flags")
	}
	f := v[3].Int % flagsEnd
	a.Rank = int(v[3].Int / flagsEnd)
	a.Vote, a.Waiters, a.Foreign = f&flagVote != 0, f&flagWaiters != 0, f&flagForeign != 0
	a.HasTotals, a.Listed, a.Barred = f&flagTotals != 0, f&flagListed != 0, f&flagBarred != 0
	if a.Ticket == 0 {
		return bad("no ticket")
	}
	if a.Vote && (a.Foreign || a.Barred || a.Rank > 0) || a.Foreign && a.Barred || a.Listed && !a.HasTotals {
		return bad("contradictory flags")
	}
	if len(v) > 4 {
		// Another library's redlock key may last as long as its owner likes.
		if v[4].Int > maxWait && !a.Foreign {
			return bad("wait")
		}
		a.Wait = time.Duration(min(v[4].Int, maxWait)) * time.Millisecond
	}
	switch {
	case f&flagLimit != 0 && (len(v) < 9 || v[7].Int == 0 || v[8].Int == 0):
		return bad("limit")
	case len(v) <= 5:
		return a, nil
	case len(v)%2 == 0 || !a.HasTotals && (f&flagLimit == 0 || v[5].Int != 0 || v[6].Int != 0):
		return bad("totals")
	}
	rest := 7
	if f&flagLimit != 0 {
		rest = 9
		a.Limit, a.LimitAt = uint64(v[7].Int), protocol.Ticket(v[8].Int)
	}
	a.Sum, a.Digest = uint64(v[5].Int), uint64(v[6].Int)
	if a.Digest >= protocol.DigestMod {
		return bad("digest")
	}
	switch all := v[rest:]; {
	case !a.Listed && len(all) > 0:
		return bad("list")
	case a.Listed && (len(all) < 2 || !total(all[0], int64(exact)) || !total(all[1], protocol.DigestMod)):
		return bad("totals of all")
	case a.Listed:
		// The lower claims are among all claims. If the totals of all were
		// smaller, they could show room that does not exist.
		if a.AllSum, a.AllDigest = uint64(all[0].Int), uint64(all[1].Int); a.AllSum < a.Sum {
			return bad("totals of all")
		}
		rest += 2
	}
	return decodeList(a, v[rest:])
}

// total reports whether v is a number below bound.
func total(v resp.Value, bound int64) bool { return v.Str == nil && v.Int >= 0 && v.Int < bound }

// decodeList parses the lower claims. The part of the totals that the list does
// not account for belongs to the claims before the list.
func decodeList(a protocol.Answer, v []resp.Value) (protocol.Answer, error) {
	if len(v) > 0 {
		a.Lower = make([]protocol.Lower, 0, len(v)/2)
	}
	var sum, digest uint64
	for i := 0; i+1 < len(v); i += 2 {
		id, ok := protocol.ParseID(string(v[i].Str))
		w := v[i+1]
		if !ok || w.Str != nil || w.Int <= 0 || w.Int >= exact {
			return protocol.Answer{}, fmt.Errorf("%w: lower claim %d", ErrAnswer, i/2)
		}
		a.Lower = append(a.Lower, protocol.Lower{ID: id, Weight: uint64(w.Int)})
		sum, digest = sum+uint64(w.Int), (digest+id.Digest())%protocol.DigestMod
		// Check this in each step: at the end, the sum of many weights could
		// have overflowed.
		if sum > a.Sum {
			return protocol.Answer{}, fmt.Errorf("%w: totals of the list", ErrAnswer)
		}
	}
	if a.Listed {
		a.BaseSum, a.BaseDigest = a.Sum-sum, (a.Digest-digest+protocol.DigestMod)%protocol.DigestMod
	}
	return a, nil
}

// DecodeMarker parses the answer to mark: the node's incarnation and its age.
// The age is negative if the node's clock was set back after its guard time
// began.
func DecodeMarker(v []resp.Value) (protocol.Incarnation, time.Duration, error) {
	if len(v) != 2 || v[0].Str != nil || v[1].Str != nil || v[0].Int <= 0 || v[0].Int >= exact ||
		v[1].Int >= exact || v[1].Int <= -exact {
		return 0, 0, fmt.Errorf("%w: marker", ErrAnswer)
	}
	age := min(max(v[1].Int, -maxWait), maxWait)
	return protocol.Incarnation(v[0].Int), time.Duration(age) * time.Millisecond, nil
}

// ParsePush parses a message on an owner's channel:
//
//	v <clock> <incarnation> <id> <ticket> <waiters> <sum> <digest> [limit since]    the claim has this node's vote now
//	w <clock> <incarnation> <id> <ticket>    another claim has begun to wait behind it
//	a <clock> <incarnation> <id> <ticket>    the node wants another request of the claim
//	e <clock> <incarnation> <id> <ticket>    an operator ends its hold
//	r <clock> <incarnation> <id> <ticket>    the record that id watches was written under ticket
//
// Any program may publish on the channel, so a push is checked as strictly as
// an answer. The process.Client judges its incarnation and ticket.
func ParsePush(payload string) (protocol.Push, error) {
	var p protocol.Push
	bad := func() (protocol.Push, error) {
		return protocol.Push{}, fmt.Errorf("%w: push %.100q", ErrAnswer, payload)
	}
	var f [10]string
	n, rest, more := 0, payload, true
	for ; more && n < len(f); n++ {
		f[n], rest, more = strings.Cut(rest, " ")
	}
	p.Vote, p.Changed, p.Ask, p.Evict = f[0] == "v", f[0] == "r", f[0] == "a", f[0] == "e"
	p.Waiters = f[0] == "w"
	if more || (p.Vote && n != 8 && n != 10) ||
		(!p.Vote && (!p.Waiters && !p.Changed && !p.Ask && !p.Evict || n != 5)) {
		return bad()
	}
	clock, ok0 := number(f[1])
	inc, ok1 := number(f[2])
	id, ok2 := protocol.ParseID(f[3])
	ticket, ok3 := number(f[4])
	if !ok0 || !ok1 || !ok2 || !ok3 || clock > uint64(maxClock) || inc == 0 || ticket == 0 {
		return bad()
	}
	p.ID, p.Clock, p.Incarnation, p.Ticket = id, int64(clock)*1000, protocol.Incarnation(inc),
		protocol.Ticket(ticket)
	if !p.Vote {
		return p, nil
	}
	var ok4, ok5 bool
	p.Waiters = f[5] == "1"
	p.Sum, ok4 = number(f[6])
	p.Digest, ok5 = number(f[7])
	if n == 10 {
		limit, ok6 := number(f[8])
		since, ok7 := number(f[9])
		if !ok6 || !ok7 || limit == 0 || since == 0 {
			return bad()
		}
		p.Limit, p.LimitAt = limit, protocol.Ticket(since)
	}
	if (f[5] != "0" && f[5] != "1") || !ok4 || !ok5 || p.Digest >= protocol.DigestMod {
		return bad()
	}
	return p, nil
}

// number parses a decimal below 2^53 in the exact form that the scripts write.
func number(s string) (uint64, bool) {
	v, err := strconv.ParseUint(s, 10, 53)
	return v, err == nil && (s == "0" || (s[0] != '0' && s[0] != '+'))
}
