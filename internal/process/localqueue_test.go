package process

import (
	linked "container/list"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// lasting is a claim that is held and renewed.
type lasting int

func (lasting) HoldState() HoldState { return HoldState{Valid: true, Usable: true} }
func (lasting) Pass() HoldState      { return HoldState{Valid: true, Usable: true} }

// What gives up leaves the others in their order. Where each of them is looked
// for among all that wait, this takes most of a minute.
func TestManyGiveUpAtOnce(t *testing.T) {
	var q LocalQueue[int, lasting]
	do, _ := q.Lock(Write, false)
	assert.Equal(t, LockGet, do)
	q.Admitted(Write, lasting(1))
	places := make([]*linked.Element, 200_000)
	for i := range places {
		places[i] = q.Wait(i, Write)
	}
	const stays = 100_000
	for _, i := range rand.Perm(len(places)) {
		if i == stays {
			continue
		}
		_, ok := q.GiveUp(places[i])
		assert.True(t, ok)
	}
	x := q.Unlock(Write)
	assert.Equal(t, UnlockPassed, x.Do)
	assert.Equal(t, stays, x.To)
	_, ok := q.GiveUp(places[stays])
	assert.False(t, ok, "its turn has come")
	assert.False(t, q.Waiters())
}
