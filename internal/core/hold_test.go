package core

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/wake"
)

// A hold that has ended is over, and its state no longer says whether a claim
// waits.
func TestStandingOfTheEnded(t *testing.T) {
	t.Parallel()
	h := Hold{&attempt{q: &claims{Peers: &peers.Peers{Clock: wake.NewClock()}},
		spec: &Spec{Set: &setup.Settings{}}}}
	assert.Equal(t, fault.ErrLost, h.Cause())
	for ends, cause := range map[packedState]error{evicted: fault.ErrEvicted, shut: fault.ErrClosed} {
		h.a.packed.Store(int64(ends))
		s := h.HoldState()
		assert.Equal(t, process.HoldState{At: s.At, Over: true}, s)
		assert.Equal(t, cause, h.Cause())
	}
}

// blockingHandler is a logger that does not return from a loss until it may.
type blockingHandler struct {
	slog.Handler
	blocked chan struct{}
	may     chan struct{}
}

func (h blockingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h blockingHandler) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "a hold was lost") {
		h.blocked <- struct{}{}
		<-h.may
	}
	return nil
}

// The scheduler of renewals finds a loss, and the logger that is told of it
// blocks. Other holds are still renewed.
func TestLoggerThatBlocksAtALoss(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	set := exchangeSettings()
	logger := blockingHandler{slog.DiscardHandler, make(chan struct{}, 1), make(chan struct{})}
	set.Logger = slog.New(logger)
	q := opened(t, set, c.Node(0))
	require.NoError(t, q.Bootstrap(within(t)))
	late := lateness.Measure(t)
	kept := held(t, q, "kept")
	ends := set
	ends.NoRenewal = true
	s, err := q.NewSpec(Spec{Name: "ends", Weight: 1, Capacity: 1, Set: &ends})
	require.NoError(t, err)
	h, err := q.Acquire(within(t), s, false, new(Single))
	require.NoError(t, err)
	h.a.mu.Lock()
	q.deadlines.Drop(&h.a.alarms)
	h.a.mu.Unlock()
	gone(t, logger.blocked)
	time.Sleep(set.TTL + set.TTL/2)
	assert.True(t, kept.Valid() || late.Most() > set.TTL/4, "a hold is not renewed while a logger blocks")
	close(logger.may)
	kept.Release()
}

// The ttl of a client is longer than the set's guard time covers, which the
// client does not know yet when the call begins.
func TestTTLBeyondASetThatIsFoundLater(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	gives(t, c, 3)
	set := exchangeSettings()
	set.TTL, set.Guard = 10*set.TTL, 30*set.TTL
	q := started(t, []redis.UniversalClient{c.Node(0).Client(), c.Node(1).Client(), c.Node(2).Client()}, set)
	s, err := q.NewSpec(Spec{Name: "n", Weight: 1, Capacity: 1, Set: &q.Set})
	require.NoError(t, err)
	p, err := q.Begin(t.Context(), s, false, nil)
	if err == nil { // the set was not known
		_, err = p.Wait(within(t))
	}
	require.ErrorIs(t, err, fault.ErrInvalid)
	_, is := errors.AsType[*fault.TTLError](err)
	assert.True(t, is, "%v", err)
}

// A repair by such a client decides what a run has left undecided, under a lease
// that the set's guard time covers.
func TestRepairByAClientWhoseTTLIsTooLong(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	gives(t, c, 3)
	set := exchangeSettings()
	set.TTL, set.Guard = 10*set.TTL, 30*set.TTL
	q := started(t, []redis.UniversalClient{c.Node(0).Client(), c.Node(1).Client(), c.Node(2).Client()}, set)
	connected(t, q)
	decided, err := asker{&q.repairs, 0}.Decide("n}", false)
	require.NoError(t, err)
	assert.True(t, decided)
}

// The error of a release that was not waited for has the cause of the context
// that ended.
func TestReleasedHasTheCause(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q := opened(t, patient(), c.Node(0))
	require.NoError(t, q.Bootstrap(within(t)))
	h := held(t, q, "n")
	require.NoError(t, c.Node(0).Stop())
	h.Release()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("as the test wants it")
	cancel(why)
	err := h.Released(ctx)
	require.ErrorIs(t, err, fault.ErrNoQuorum)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, why)
}
