package lease

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/stretchr/testify/assert"
)

// A run's first operation that one node refuses for a later run, and another
// does not vote for, ends after a while. A put of a run that has been opened
// goes on: these nodes have promised to take it.
func TestRunThatNoQuorumCanTake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   RegisterOp
		want Outcome
	}{
		"open":      {RegisterOp{Op: protocol.OpOpen}, Superseded},
		"first put": {RegisterOp{Op: protocol.OpPut, First: true}, Superseded},
		"later put": {RegisterOp{Op: protocol.OpPut}, Asking},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := c.in
			q.Stored.Version = protocol.Version{Ticket: 640, ID: protocol.ID{1}, Seq: 1}
			q.Nodes, q.NodeTimeout, q.MaxPause, q.Fresh = 3, 200*time.Millisecond, time.Second, time.Minute
			now := protocol.Time(time.Second)
			end := now.Add(3 * time.Second)
			q.Start(now)
			for now < end && q.Outcome() == Asking {
				out := append([]protocol.Request(nil), q.Out...)
				q.Out = nil
				for _, r := range out {
					q.Answer(now, r, protocol.Answer{Status: []protocol.Status{protocol.StatusSuperseded, protocol.OK,
						protocol.Missing}[r.Node], Record: &protocol.Entry{Forged: r.Node == 0, CaughtUp: r.Node > 0}})
				}
				if now > protocol.Time(time.Second).Add(q.MaxPause) && c.want == Superseded {
					assert.Equal(t, Superseded, q.Outcome())
				}
				now = min(end, max(now.Add(time.Millisecond), q.Wake()))
				q.Tick(now)
			}
			assert.Equal(t, c.want, q.Outcome())
		})
	}
}
