package process

import (
	linked "container/list"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// lasting is a claim that is held and renewed.
type lasting int

func (lasting) Standing() Standing { return Standing{Valid: true, Usable: true} }
func (lasting) Pass() Standing     { return Standing{Valid: true, Usable: true} }

// What gives up leaves the others in their order. It takes no longer where many
// wait: a hold that is lost ends under the same lock.
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
	began := time.Now()
	for _, i := range rand.Perm(len(places)) {
		if i == stays {
			continue
		}
		_, ok := q.GiveUp(places[i])
		assert.True(t, ok)
	}
	assert.Less(t, time.Since(began), 4*time.Second)
	x := q.Unlock(Write)
	assert.Equal(t, UnlockPassed, x.Do)
	assert.Equal(t, stays, x.To)
	_, ok := q.GiveUp(places[stays])
	assert.False(t, ok, "its turn has come")
	assert.False(t, q.Waiters())
}
