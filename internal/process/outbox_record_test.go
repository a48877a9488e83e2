package process

import (
	"testing"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/stretchr/testify/assert"
)

// At most one request of an operation waits for a node. A newer one takes its
// place, in its class.
func TestRecordRequestsAreReplaced(t *testing.T) {
	t.Parallel()
	q := &lease.RegisterOp{Op: protocol.OpRead, Nodes: 1}
	first := protocol.Request{Op: protocol.OpRead, Sent: 1}
	assert.True(t, q.Goes(&first))
	q.MarkWaiting(&first)
	newer := protocol.Request{Op: protocol.OpRepair, Sent: 2}
	assert.False(t, q.Goes(&newer))
	assert.Equal(t, protocol.OpRepair, first.Op)
	assert.Equal(t, protocol.Time(2), first.Sent)
	assert.Equal(t, protocol.Records, first.Class)
	assert.True(t, q.Sending(&first))
	q.Sent(&first)
	assert.True(t, q.Goes(&newer), "nothing waits any more")
}

// What waits is not sent once its operation has ended. An erasure is: its
// caller does not wait.
func TestRecordRequestsOfAnEndedOperation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		q    lease.RegisterOp
		want bool
	}{
		{lease.RegisterOp{Op: protocol.OpPut}, false}, {lease.RegisterOp{Op: protocol.OpRead}, false},
		{lease.RegisterOp{Op: protocol.OpPut, Stored: protocol.Stored{Erased: true}}, true},
	} {
		r := protocol.Request{Op: c.q.Op, Stored: &c.q.Stored}
		c.q.Goes(&r)
		c.q.MarkWaiting(&r)
		assert.True(t, c.q.Sending(&r))
		c.q.End()
		assert.Equal(t, c.want, c.q.Sending(&r), "%v", c.q.Op)
	}
}
