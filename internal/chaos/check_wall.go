package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate"
)

// wallStats is what clients with a wrong wall clock got.
type wallStats struct {
	Set     int // times that a clock was wrong from the start, or was set
	Refused int // calls of clients whose clock was wrong, which failed for that
	Held    int // holds of claims that were made meanwhile, before it was noticed
}

// contradicted says that the operation failed since the nodes contradict the
// client's wall clock.
func (o *operation) contradicted() bool {
	return o.Failed > 0 && strings.Contains(o.Err, quorate.ErrNoQuorum.Error()+": this process's wall clock is ")
}

// lately is how long a client may go on thinking that its clock is wrong, and
// how much later it may say so: it looks each second, and a majority must
// answer.
const lately = 5 * time.Second

// refusals finds clients that were refused though their clocks were right. A
// client learns that its clock is right from a majority of the nodes. That a
// majority answers is certain only while clients get holds: on a machine that
// is busy with other things none may get one for half a minute.
func refusals(h *history, stats *wallStats) (found []violation) {
	stats.Set = h.Set
	var begun []int64 // the seconds in which holds began
	for _, o := range h.Ops {
		if o.held() {
			begun = append(begun, o.Begin/int64(time.Second))
		}
	}
	slices.Sort(begun)
	begun = slices.Compact(begun)
	served := func(o *operation) time.Duration { // since the client's clock was set, until it was refused
		from, _ := slices.BinarySearch(begun, o.Set/int64(time.Second)+1)
		to, _ := slices.BinarySearch(begun, o.Failed/int64(time.Second))
		return time.Duration(to-from) * time.Second
	}
	for _, o := range h.Ops {
		wrong := time.Duration(o.Wall).Abs() > skew/2
		switch {
		case wrong && o.contradicted():
			stats.Refused++
		case wrong && o.held():
			stats.Held++
		case o.contradicted() && (o.Set == 0 || o.Failed-o.Set > int64(patience+lately) && served(o) >= lately):
			found = append(found, violation{At: o.Failed, What: "refused for its wall clock, which is right: " + o.Err, Ops: []*operation{o}})
		}
	}
	return found
}

// The ticket of a token is in microseconds. Nodes give none that is further
// ahead of their clocks than half of the guard time. A claim that waits for
// long, or is shared, has an old one.
const (
	aheadMore = time.Second // clocks that drift, and the time between two looks at a clock
	agedMost  = time.Minute
)

// ticketTime is the time, as of now, that the ticket of the operation's token
// shows.
func (o *operation) ticketTime(epoch int64) int64 {
	return int64(o.claim())*int64(time.Microsecond) - epoch
}

// astray finds holds whose token is far from the time: a client with a wrong
// clock has brought it in, and others go on from there. epoch is the wall
// clock's time when now was 0.
func astray(ops []*operation, epoch int64, window time.Duration) (found []violation) {
	for _, o := range ops {
		if !o.held() {
			continue
		}
		ahead := time.Duration(o.ticketTime(epoch) - o.Begin)
		if ahead > window+aheadMore || ahead < -agedMost {
			found = append(found, violation{At: o.Begin, What: fmt.Sprintf("the token of %s is %v ahead of the time", o.Name, ahead), Ops: []*operation{o}})
		}
	}
	return found
}
