package repair

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
)

// A client has the turn at a node for four node timeouts, 800 ms here. While it
// lists names it prolongs the turn early enough that a request which takes a
// whole node timeout still arrives in time. Otherwise a second client begins,
// and both bring the names.
func TestATurnIsProlongedInTime(t *testing.T) {
	t.Parallel()
	r, look := newRepair(t)
	list(t, r, look)
	const turn = 800 * time.Millisecond
	ends := protocol.Time(1).Add(turn)
	for range 5 {
		at := r.Wake()
		require.Less(t, at.Add(r.NodeTimeout), ends)
		r.Tick(at)
		stay := steps(t, r, RepairStay)[0]
		assert.Equal(t, turn, stay.For)
		ends = at.Add(turn)
	}
}
