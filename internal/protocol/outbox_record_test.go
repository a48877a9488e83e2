package protocol

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// none reports that nothing waits at a node.
func none(Class) bool { return false }

// At most one request of an operation waits for a node. A newer one takes its
// place, in its class.
func TestRecordRequestsAreReplaced(t *testing.T) {
	t.Parallel()
	q := &RegisterOp{Op: OpRead, Nodes: 1}
	first := Request{Op: OpRead, Sent: 1}
	assert.Equal(t, Wait, q.Offer(&first, func(Class) bool { return true }), "others wait")
	q.Waits(&first)
	newer := Request{Op: OpRepair, Sent: 2}
	assert.Equal(t, Drop, q.Offer(&newer, none))
	assert.Equal(t, OpRepair, first.Op)
	assert.Equal(t, Time(2), first.Sent)
	assert.Equal(t, Records, first.Class)
	assert.True(t, q.Depart(&first))
	q.Departed(&first)
	assert.Equal(t, Hand, q.Offer(&newer, none), "nothing waits any more")
}

// What waits is not sent once its operation has ended. An erasure is: its
// caller does not wait.
func TestRecordRequestsOfAnEndedOperation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		q    RegisterOp
		want bool
	}{
		{RegisterOp{Op: OpPut}, false}, {RegisterOp{Op: OpRead}, false}, {RegisterOp{Op: OpPut, Stored: Stored{Erased: true}}, true},
	} {
		r := Request{Op: c.q.Op}
		c.q.Offer(&r, none)
		c.q.Waits(&r)
		assert.True(t, c.q.Depart(&r))
		c.q.End()
		assert.Equal(t, c.want, c.q.Depart(&r), "%v", c.q.Op)
	}
}
