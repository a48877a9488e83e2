package script_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A claim writes a record only if it has the vote, or a promise of this
// incarnation. The reference node has the same test.
func TestWhoMayWriteARecord(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	for _, op := range []protocol.Op{protocol.OpOpen, protocol.OpPut} {
		require.NoError(t, c.FlushAll(t.Context()).Err())
		n := newNode(c)
		a, b := n.terms(1, 1), n.terms(2, 1)
		write := func(terms protocol.Terms, op protocol.Op) protocol.Status {
			reply, err := n.send(t, terms, protocol.Request{Op: op, Promise: new(protocol.Version),
				Stored: &protocol.Stored{Version: protocol.Version{ID: terms.ID, Ticket: 640 + protocol.Ticket(terms.ID[15])}}})
			require.NoError(t, err)
			answer, err := script.DecodeRecord(values(t, reply))
			require.NoError(t, err)
			return answer.Status
		}
		require.EqualValues(t, 641, n.do(t, a, join(641)).Ticket)
		require.EqualValues(t, 642, n.do(t, b, join(642)).Ticket)
		assert.Equal(t, protocol.Missing, write(b, op), "%v of a claim that waits", op)
		assert.Equal(t, protocol.OK, write(a, protocol.OpOpen))
		n.do(t, a, protocol.Request{Op: protocol.OpLeave})
		require.NoError(t, c.Set(t.Context(), n.keys.Marker(), "8 0 run 0", 0).Err())
		assert.Equal(t, protocol.Missing, write(a, op), "%v with a promise of an earlier incarnation", op)
		require.NoError(t, c.Set(t.Context(), n.keys.Marker(), "7 0 run 0", 0).Err())
		assert.Equal(t, protocol.OK, write(a, op), "%v with a promise", op)
	}
}
