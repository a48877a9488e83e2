package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

func TestAQuorumIsAMajorityOfEachSet(t *testing.T) {
	t.Parallel()
	for nodes := 1; nodes <= 7; nodes++ {
		q := protocol.Majority(nodes)
		for have := range uint32(1 << nodes) {
			n := 0
			for i := range nodes {
				n += int(have >> i & 1)
			}
			assert.Equal(t, n >= nodes/2+1, q.Met(have), "%b of %d", have, nodes)
		}
		assert.Equal(t, nodes/2+1, q.Need())
	}
	q := protocol.Quorums{Present: 0b00111, Next: 0b11100} // ABC, and then CDE
	assert.True(t, q.Met(0b01101), "A, C and D")
	assert.False(t, q.Met(0b00111), "all of the set of before, and one of the next one")
	assert.False(t, q.Met(0b11001), "a majority of all nodes")
	assert.True(t, q.Blocked(0b11000))
	assert.EqualValues(t, 0b11111, q.All())
	assert.Equal(t, 2, q.Need())
	for have := range uint32(32) {
		assert.Equal(t, q.Met(have), q.Count(have) >= q.Need(), "%b", have)
	}
	assert.Equal(t, 3, q.Count(0b11111))
	assert.Equal(t, 1, q.Count(0b00111), "of the next set there is only C")
	assert.Equal(t, 4, protocol.Majority(5).Count(0b11011))
}

func TestReached(t *testing.T) {
	t.Parallel()
	ends := []int{5, 9, 7, 1, 8}
	value := func(node int) int { return ends[node] }
	reached := func(q protocol.Quorums, nodes uint32) any {
		if v, ok := protocol.Reached(q, nodes, value); ok {
			return v
		}
		return nil
	}
	assert.Equal(t, 7, reached(protocol.Majority(3), 0b111), "two of 5, 9 and 7")
	assert.Equal(t, 5, reached(protocol.Majority(3), 0b101), "5 and 7")
	assert.Nil(t, reached(protocol.Majority(3), 0b001))
	q := protocol.Quorums{Present: 0b00111, Next: 0b11100} // ABC, and then CDE
	assert.Equal(t, 7, reached(q, 0b11111), "A, B and C give 7, and C, D and E too")
	assert.Equal(t, 1, reached(q, 0b01111), "C and D give 1")
	assert.Nil(t, reached(q, 0b00111), "of the next set there is only C")
}
