package process

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/stretchr/testify/assert"
)

// So many attempts begin at a time. The others are served in order, without
// those that have given up.
func TestIntake(t *testing.T) {
	i := Intake[string]{Places: 2}
	assert.True(t, i.Take())
	assert.True(t, i.Take())
	assert.False(t, i.Take())
	i.Wait("c")
	d := i.Wait("d")
	e := i.Wait("e")
	assert.True(t, i.GiveUp(d))
	next, ok := i.Leave()
	assert.Equal(t, "c", next)
	assert.True(t, ok)
	assert.False(t, i.Take(), "the place went to c")
	next, _ = i.Leave()
	assert.Equal(t, "e", next)
	assert.False(t, i.GiveUp(e), "it has a place")
	_, ok = i.Leave()
	assert.False(t, ok)
	assert.True(t, i.Take())
	assert.False(t, i.Take())
}

// An attempt has its place until a quorum of nodes has answered or failed,
// whatever they have said.
func TestUnderway(t *testing.T) {
	c := NewClient(ClientConfig{Nodes: 3, TTL: time.Second, NodeTimeout: time.Second, Guard: 3 * time.Second})
	n := &Name{Name: "n"}
	var a Attempt
	c.Start(1, &a, n, &Begin{Terms: protocol.Terms{ID: protocol.ID{1}, Weight: 1, Capacity: 1, TTL: time.Second}, NodeTimeout: time.Second, Defer: &Deferral{}})
	asked := append([]protocol.Request(nil), a.Out...)
	for i := range asked {
		assert.Equal(t, protocol.Hand, c.Offer(&a, n, &asked[i], func(protocol.Class) bool { return false }))
		a.Departed(&asked[i], true)
	}
	a.Sent()
	assert.True(t, a.Underway())
	a.Fail(2, &asked[0], false)
	assert.True(t, a.Underway())
	a.Fail(3, &asked[2], false)
	assert.False(t, a.Underway())
	assert.Equal(t, lease.Joining, a.Phase())
}
