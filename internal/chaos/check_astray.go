package main

import (
	"fmt"
	"time"
)

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

// astray finds holds whose token is far from the time: the wrong clock of one
// node is in it. epoch is the wall clock's time when now was 0.
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
