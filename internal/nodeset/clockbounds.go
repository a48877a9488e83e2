package nodeset

import (
	"github.com/quorate/quorate/internal/protocol"
	"math"
	"time"
)

// Reading is a node's time, as given in an answer or a push.
type Reading struct {
	Sent, Received protocol.Time // this process's clock before the request and after the answer
	Micros         int64         // the node's clock in between, which may have been cut to milliseconds
	Push           bool          // unasked, so Sent is not known
}

// clockRate limits how fast the clocks of a node and a client may drift apart:
// 1/50. That is twice the 1% by which clocks may differ, so no clock within the
// limit is ever suspected.
const clockRate = 50

// ClockBounds is what a client knows of one node's clock: bounds of how far it
// is ahead of the client's own, in nanoseconds. A reading narrows them. Time
// widens them. It is not safe for concurrent use.
//
// Invariant: the lower end is correct even if the client's clock stands still
// while an answer is on its way. The upper end is correct for what that clock
// did before asked. So nothing is evidence of a jump of this node unless it
// rules out that the client's clock has stood still since asked.
type ClockBounds struct {
	span
	known bool
	asked protocol.Time // when the question was sent whose answer set the upper end
	past  [9]span
	gap   time.Duration // between the spans in past: see remember
	fresh protocol.Time // only a reading sent at this time or later starts new bounds
}

// span holds the bounds as they were at some time.
type span struct {
	at       protocol.Time // of the newest reading by then
	low, top int64
}

// remember keeps the bounds before a reading moves them. past[i] is replaced by
// past[i-1] when it is 2^i gaps old, so a span of about any age is kept.
func (b *ClockBounds) remember(now protocol.Time) {
	s := b.span
	for i := range b.past {
		if p := &b.past[i]; p.at == 0 || now.Sub(p.at) >= b.gap<<i {
			s, *p = *p, s
		} else {
			return
		}
	}
}

// before returns the newest bounds that depend only on what was heard before t,
// or the zero span if there are none. Newer bounds may depend on later
// readings.
func (b *ClockBounds) before(t protocol.Time) span {
	if !b.known {
		return span{}
	}
	if b.at < t {
		return b.span
	}
	for _, s := range b.past {
		if s.at < t {
			return s // the zero span if there are no more
		}
	}
	return span{}
}

// parted returns how far the clocks have moved apart since the bounds were
// correct: at least lo and at most hi. If lo <= 0 <= hi, they may not have
// moved apart at all.
func (b *span) parted(r Reading) (lo, hi int64) {
	if r.Push { // nothing is known of when it was sent: only that it was before
		drift := int64(max(0, r.Received-b.at)) / clockRate
		return r.Micros*1000 - int64(r.Received) - b.top - drift, math.MaxInt64
	}
	drift := int64(max(r.Received, b.at)-min(r.Sent, b.at)) / clockRate
	low, top := r.bounds()
	return low - b.top - drift, top - b.low + drift
}

// bounds returns the bounds that follow from a single reading.
func (r Reading) bounds() (low, top int64) {
	own := int64(r.Received-r.Sent) / clockRate // while the answer was under way
	return r.Micros*1000 - int64(r.Received) - own, (r.Micros+1000)*1000 - int64(r.Sent) + own
}

// Take takes a reading that is within the bounds. It changes nothing and
// returns false if the clocks have parted, or nothing is known and the reading
// is too old to begin with.
func (b *ClockBounds) Take(r Reading) bool {
	if !b.known {
		if !r.Push && r.Sent < b.fresh {
			return false
		}
		if !r.Push {
			b.begin(r)
		}
		return true
	}
	if lo, hi := b.parted(r); lo > 0 || hi < 0 {
		return false
	}
	if !r.Push {
		low, top := r.bounds()
		drift := int64(max(r.Received, b.at)-min(r.Sent, b.at)) / clockRate
		b.remember(r.Received)
		if top <= b.top+drift {
			b.asked = r.Sent
		}
		b.span = span{r.Received, max(low, b.low-drift), min(top, b.top+drift)}
	}
	return true
}

// begin sets the bounds from a single reading. The past is dropped, because it
// belongs to another clock, or to the same one before it was set.
func (b *ClockBounds) begin(r Reading) {
	low, top := r.bounds()
	b.known, b.asked, b.span, b.past = true, r.Sent, span{r.Received, low, top}, [9]span{}
}

// Forget makes the next reading set the bounds, provided that it was sent after
// a given time.
func (b *ClockBounds) Forget(since protocol.Time) { b.known, b.fresh = false, since }

// At returns when the newest reading was heard, 0 if the bounds are not known.
func (b *ClockBounds) At() protocol.Time {
	if !b.known {
		return 0
	}
	return b.at
}

// Width returns how far apart the bounds are at now: a jump of the node's clock
// that is smaller may go unnoticed.
func (b *ClockBounds) Width(now protocol.Time) time.Duration {
	return time.Duration(b.top - b.low + 2*int64(max(0, now-b.at))/clockRate)
}
