package core

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/setup"
)

// However many attempts a client makes, no ticket that it proposes runs ahead
// of its wall clock. Retention and guard time rest on that.
func TestTicketsStayWithTheClock(t *testing.T) {
	t.Parallel()
	set := setup.Defaults()
	set.Logger = slog.New(slog.DiscardHandler)
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = c.Close() })
	q, err := New([]redis.UniversalClient{c}, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) }) // it cannot send the leaves
	counting(t, q)
	s, err := q.NewSpec(Spec{Name: "m", Weight: 1, Capacity: 1, Set: &q.Set})
	require.NoError(t, err)
	var lead time.Duration
	for range 100_000 {
		h, err := q.Begin(t.Context(), s, true, nil)
		require.NoError(t, err)
		lead = max(lead, time.Until(time.UnixMicro(int64(h.a.claim.State.Ticket()))))
		h.Cancel()
	}
	assert.LessOrEqual(t, lead, 20*time.Millisecond)
}

// A claim must be configured as in the simulator: a field that is left out
// would switch a rule off, and no schedule of the simulator would show it.
func TestClaimsAreConfigured(t *testing.T) {
	set := setup.Defaults()
	set.Logger = slog.New(slog.DiscardHandler)
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = c.Close() })
	q, err := New([]redis.UniversalClient{c}, set)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	counting(t, q)
	s, err := q.NewSpec(Spec{Name: "s", Weight: 1, Capacity: 2, Counting: true, Notify: true,
		ShortHold: true, Set: &q.Set})
	require.NoError(t, err)
	h, err := q.Begin(t.Context(), s, true, nil)
	require.NoError(t, err)
	defer h.Cancel()
	for _, v := range []reflect.Value{reflect.ValueOf(h.a.claim.State.Config),
		reflect.ValueOf(h.a.claim.State.Terms)} {
		for i := range v.NumField() {
			// All nodes are members, none are exchanged, and holds are renewed.
			if name := v.Type().Field(i).Name; !slices.Contains([]string{"Absent", "Succession", "NoRenewal"}, name) {
				assert.False(t, v.Field(i).IsZero(), name)
			}
		}
	}
}

// counting has a client count on the set of its list, as if its nodes had
// recorded it.
func counting(t *testing.T, q *Quorum) {
	t.Helper()
	b := nodeset.NewBallot(time.Now(), rand.Uint32(), "")
	shared := nodeset.Shared{Guard: q.Set.Guard, Retention: q.Set.Retention, Skew: q.Set.Skew}
	c := &nodeset.Configuration{Stamp: nodeset.StampOf(1, b), Origin: nodeset.StampOf(1, b), Now: shared,
		Next: shared, Last: len(q.Clients.List()) - 1}
	for i, addr := range q.Clients.List() {
		c.Members = append(c.Members, nodeset.Member{Number: i,
			Identity: strings.Repeat(strconv.Itoa(i+1), 16), Addr: addr})
	}
	q.Members.Change(-1, func(m *nodeset.Membership) {
		for i, k := range c.Members {
			m.Met(nodeset.Seed+i, nodeset.NodeSet{Phase: nodeset.SetRecorded, Identity: k.Identity, Config: c})
		}
	})
	q.Members.Met.Store(true) // no try waits for a node
}
