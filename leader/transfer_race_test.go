package leader

import (
	"cmp"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/quoratetest"
)

// Campaign replaces the value at the moment at which TransferTo ends the term.
// The nodes are slow, so Campaign is still writing when the term's context ends,
// and finds that its write has failed before TransferTo has sent the erasure.
func TestCampaignDoesNotDropTheChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		n := quoratetest.New(t, 3)
		a, b, c := New(n.Quorum(), "e", WithID("a")), New(n.Quorum(), "e", WithID("b")),
			New(n.Quorum(), "e", WithID("c"))
		campaign := func(e *Election) <-chan error {
			done := make(chan error, 1)
			go func() { done <- e.Campaign(ctx, "") }()
			return done
		}
		require.NoError(t, a.Campaign(ctx, ""))
		toB := campaign(b)
		time.Sleep(time.Second)
		toC := campaign(c)
		time.Sleep(time.Second)
		term := a.current()
		all, err := a.waiting(ctx, term)
		require.NoError(t, err)

		delay := func(d time.Duration) {
			for i := range 3 {
				n.Delay(i, d)
			}
		}
		delay(time.Minute)
		again := campaign(a)
		synctest.Wait()
		require.True(t, a.take(term))
		_, lost := term.lease.Finish(fault.ErrReleased) // the first half of end
		require.NoError(t, lost)
		synctest.Wait()
		require.Empty(t, again)
		require.NoError(t, a.end(ctx, term, withID(all, "c")))
		delay(0)
		select {
		case err := <-toC:
			require.NoError(t, err)
		case <-toB:
			t.Fatal("b leads")
		}
		require.NoError(t, c.Resign(ctx))
		for range 2 { // in either order
			select {
			case err = <-toB:
				toB, err = nil, cmp.Or(err, b.Resign(ctx))
			case err = <-again:
				again, err = nil, cmp.Or(err, a.Resign(ctx))
			}
			require.NoError(t, err)
		}
	})
}

// The nodes 0, 1 and 2 have a leader a, for which node 0 does not vote, and node
// 2 is slow. If a releases at once, node 1 alone has a's choice: node 0 refuses
// the erasure. Nodes 0 and 1 admit b, which reads nodes 0 and 2, misses the
// choice, and leads. So no node may get the release before a majority has erased.
func TestChoiceIsRecordedBeforeTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 40 * time.Millisecond
		n := quoratetest.New(t, 3)
		a, c := New(n.Quorum(), "e", WithID("a")), New(n.Quorum(), "e", WithID("c"))
		require.NoError(t, a.Campaign(t.Context(), ""))
		led := make(chan error, 1)
		go func() { led <- c.Campaign(t.Context(), "") }()
		time.Sleep(time.Second)
		term := a.current()
		all, err := a.waiting(t.Context(), term)
		require.NoError(t, err)
		first := n.Holders("e")[0].Token

		n.Delay(1, late)
		n.Delay(2, late)
		require.True(t, a.take(term))
		ended := make(chan error, 1)
		go func() { ended <- a.end(t.Context(), term, withID(all, "c")) }()
		time.Sleep(late + late/2) // the slow nodes have erased
		holders := n.Holders("e")
		require.Len(t, holders, 1)
		require.Equal(t, first, holders[0].Token)
		require.NoError(t, <-ended)
		require.NoError(t, <-led)
		require.NoError(t, c.Resign(t.Context()))
	})
}
