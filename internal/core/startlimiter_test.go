package core_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// Far more callers lock at one moment than attempts begin at a time, and no
// node answers. The callers wait, a try and one whose context ends learn why,
// and all are served when the nodes answer again.
func TestCallersWaitForAPlace(t *testing.T) {
	t.Parallel()
	q, nodes, _, set := inMemory(t)
	spec := func(name string) *core.Spec {
		s, err := q.NewSpec(core.Spec{Name: name, Weight: 1, Capacity: 1, Set: &set})
		require.NoError(t, err)
		return s
	}
	for _, n := range nodes {
		n.Freeze()
	}
	const more = 500
	var all sync.WaitGroup
	for i := range core.MaxStarting + more {
		if i == core.MaxStarting {
			require.Eventually(t, func() bool { return q.Attempts() == core.MaxStarting },
				time.Minute, time.Millisecond)
		}
		s := spec(strconv.Itoa(i))
		all.Go(func() {
			h, err := q.Acquire(soon(t), s, false, nil)
			if assert.NoError(t, err) {
				assert.True(t, h.Valid())
			}
		})
	}
	_, err := q.Acquire(soon(t), spec("try"), true, nil)
	assert.ErrorIs(t, err, fault.ErrNoQuorum)
	assert.ErrorContains(t, err, "of this process are waiting for their first answers")
	ctx, cancel := context.WithCancel(soon(t))
	time.AfterFunc(time.Millisecond, cancel)
	_, err = q.Acquire(ctx, spec("ends"), false, nil)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, fault.ErrNoQuorum)
	assert.Equal(t, core.MaxStarting, q.Attempts(), "the others wait")

	for _, n := range nodes {
		n.Thaw()
	}
	all.Wait()
	assert.Equal(t, core.MaxStarting+more, q.Attempts())
}
