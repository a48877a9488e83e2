package mutex_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

func TestGroupExtendAndUnlockContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum(quorate.WithoutRenewal())
		g := mutex.All(q, []string{"a", "b"})
		require.ErrorIs(t, g.Extend(hour(t)), quorate.ErrNotHeld)
		require.ErrorIs(t, g.UnlockContext(hour(t)), quorate.ErrNotHeld)
		require.ErrorIs(t, mutex.All(q, nil).Extend(hour(t)), quorate.ErrNotHeld)

		require.NoError(t, g.LockContext(hour(t)))
		before := map[string]time.Time{"a": g.Lease("a").ValidUntil(), "b": g.Lease("b").ValidUntil()}
		time.Sleep(time.Second)
		require.NoError(t, g.Extend(hour(t)))
		for name, until := range before {
			assert.True(t, g.Lease(name).ValidUntil().After(until), name)
		}
		require.NoError(t, g.UnlockContext(hour(t)))
		assert.Empty(t, c.Holders("a"))
		assert.Empty(t, c.Holders("b"))

		require.NoError(t, g.LockContext(hour(t)), "the turn is free again")
		time.Sleep(time.Second)
		c.Partition(q, 0, 1)
		err := g.Extend(hour(t))
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		require.ErrorContains(t, err, `extend "a"`)
		err = g.UnlockContext(hour(t))
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		require.ErrorContains(t, err, `unlock "a"`)
		require.Nil(t, g.Lease("a"), "it is unlocked in any case")

		c.Partition(q)
		require.NoError(t, g.LockContext(hour(t)))
		<-g.Lease("b").Context().Done()
		require.ErrorIs(t, g.UnlockContext(hour(t)), quorate.ErrLost)
	})
}

// The caller learns that one name was lost, and that the release of another one
// was not confirmed.
func TestUnlockContextSaysWhatWasLostAndWhatIsUnconfirmed(t *testing.T) {
	for lost := range 2 {
		synctest.Test(t, func(t *testing.T) {
			sets := []*quoratetest.Cluster{quoratetest.New(t, 1), quoratetest.New(t, 1)}
			qs := []*quorate.Quorum{sets[0].Quorum(), sets[1].Quorum()}
			b := mutex.Both(qs[0], qs[1], "m")
			require.NoError(t, b.LockContext(hour(t)))
			sets[lost].Partition(qs[lost], 0)
			<-b.Leases()[lost].Context().Done()
			sets[1-lost].Partition(qs[1-lost], 0)
			err := b.UnlockContext(hour(t))
			require.ErrorIs(t, err, quorate.ErrLost)
			require.ErrorIs(t, err, quorate.ErrNoQuorum)
			require.ErrorAs(t, err, new(*quorate.Error))
		})
	}
}
