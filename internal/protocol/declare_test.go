package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// leavesUsed: a set that clients use is not recorded, also if some node does
// not answer.
func leavesUsed(t assert.TestingT, rules protocol.Rules) {
	d := protocol.Declaration{Rules: rules}
	assert.True(t, d.Judge([]protocol.NodeUse{protocol.UseUnknown, protocol.UseMade, protocol.UseNone}))
	assert.False(t, d.Set)
}

// keepsGuards: where a node of a recorded set votes no guard time ends.
func keepsGuards(t assert.TestingT, rules protocol.Rules) {
	d := protocol.Declaration{Set: true, Rules: rules}
	of, any := d.Ends(1)
	assert.Zero(t, of)
	assert.False(t, any)
	assert.True(t, d.Declared(true, []protocol.Incarnation{1, 2, 3}))
	of, any = d.Ends(1)
	assert.Zero(t, of)
	assert.False(t, any)
}

func TestDeclaration(t *testing.T) {
	t.Parallel()
	leavesUsed(t, protocol.Rules{})
	keepsGuards(t, protocol.Rules{})

	d := protocol.Declaration{}
	assert.False(t, d.Judge([]protocol.NodeUse{protocol.UseNone, protocol.UseUnknown}), "the other one may be in use")
	assert.True(t, d.Judge([]protocol.NodeUse{protocol.UseNone, protocol.UseNone}))
	assert.True(t, d.Set, "no client uses them")
	d = protocol.Declaration{}
	assert.True(t, d.Judge([]protocol.NodeUse{protocol.UseBegun, protocol.UseUnknown, protocol.UseMade}))
	assert.True(t, d.Set, "what was begun is ended")

	// No node votes: the guard times of these incarnations end, also when the
	// call tries again.
	assert.False(t, d.Declared(false, []protocol.Incarnation{7, 8, 9}))
	for range 2 {
		of, any := d.Ends(2)
		assert.Equal(t, protocol.Incarnation(9), of)
		assert.False(t, any)
		assert.True(t, d.Declared(true, []protocol.Incarnation{7, 8, 9}))
	}

	d = protocol.Declaration{}
	_, any := d.Ends(0)
	assert.True(t, any, "nothing is recorded")
	assert.True(t, d.Declared(true, nil))
}
