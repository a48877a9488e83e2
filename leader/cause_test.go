package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

// atMost panics at one acquisition too many.
type atMost struct{ left int }

func (l *atMost) AcquireStart(ctx context.Context, _ quorate.AcquireInfo) context.Context {
	if l.left--; l.left < 0 {
		panic("too many acquisitions")
	}
	return ctx
}
func (*atMost) AcquireEnd(context.Context, quorate.AcquireResult) {}
func (*atMost) HoldEnd(context.Context, quorate.HoldResult)       {}

// The context of Campaign may be that of another hold, which is lost. Its cause
// is then ErrLost, and that is no loss of Campaign's own claim.
func TestCampaignUnderAHoldThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q, other := c.Quorum(quorate.WithTracer(&atMost{10})), c.Quorum()
		require.NoError(t, leader.New(other, "e").Campaign(t.Context(), ""))
		outer := mutex.New(other, "outer", quorate.WithoutRenewal())
		outer.Lock()
		defer outer.Unlock()
		require.ErrorIs(t, leader.New(q, "e").Campaign(outer.Lease().Context(), ""), quorate.ErrLost)
	})
}

// So it is for a leader that campaigns for another value: it goes on to lead,
// and Resign ends that.
func TestCampaignCutShortKeepsItsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q, other := c.Quorum(), c.Quorum()
		e := leader.New(q, "e")
		require.NoError(t, e.Campaign(t.Context(), "v"))
		term := e.Lease()
		outer := mutex.New(other, "outer", quorate.WithoutRenewal())
		outer.Lock()
		defer outer.Unlock()
		for i := range 3 {
			c.Delay(i, 10*time.Millisecond)
		}
		var err error
		for err == nil { // until the context ends during a write
			err = e.Campaign(outer.Lease().Context(), "w")
		}
		require.ErrorIs(t, err, quorate.ErrLost)
		assert.NoError(t, term.Context().Err())
		require.NoError(t, e.Resign(t.Context()))
		assert.Error(t, term.Context().Err())
	})
}
