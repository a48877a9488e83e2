package script_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A node that hung finds that all leases have ended. A patient request renews
// its own claim and leaves the others where they are. Any other request has them
// dropped.
func TestPatientRequestsDropNothing(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	for _, waiters := range []uint64{0, 1} {
		for _, patient := range []bool{true, false} {
			for _, op := range []protocol.Op{protocol.OpBeat, protocol.OpSettle} {
				require.NoError(t, c.FlushAll(t.Context()).Err())
				n := newNode(c)
				holder := n.terms(1, 1)
				first := n.do(t, holder, join(640))
				for i := range waiters {
					require.False(t, n.do(t, n.terms(i+2, 1), join(641)).Vote)
				}
				// Short leases only now: however busy the machine is, no join comes
				// after one of them.
				short := holder
				short.TTL = time.Millisecond
				for i := range waiters + 1 {
					short.ID = n.terms(i+1, 1).ID
					n.do(t, short, protocol.Request{Op: protocol.OpBeat, Patient: true})
				}
				require.Eventually(t, func() bool { return c.Exists(t.Context(), n.keys.Plain()).Val() == 0 },
					time.Minute, time.Millisecond)

				if waiters > 0 { // whichever claim is the first to come back
					n.do(t, n.terms(2, 1), protocol.Request{Op: protocol.OpBeat, Patient: patient})
				}
				a := n.do(t, holder, protocol.Request{Op: op, Ticket: first.Ticket, Patient: patient})
				if op == protocol.OpBeat && !patient {
					assert.Equal(t, protocol.Missing, a.Status, "%d waiters", waiters)
					continue
				}
				assert.Equal(t, patient || waiters == 0, a.Vote && a.Ticket == first.Ticket,
					"%v, %d waiters, patient: %t", op, waiters, patient)
			}
		}
	}
}
