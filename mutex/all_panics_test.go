package mutex_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

// tracer is a Tracer that calls the function for each name that is held.
type tracer func(name string)

func (tracer) AcquireStart(ctx context.Context, _ quorate.AcquireInfo) context.Context { return ctx }

func (f tracer) AcquireEnd(_ context.Context, r quorate.AcquireResult) { f(r.Name) }

func (tracer) HoldEnd(context.Context, quorate.HoldResult) {}

// Do gives all names back when f panics.
func TestAllAndPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		g := mutex.All(c.Quorum(), []string{"a", "b"})
		assert.PanicsWithValue(t, "f", func() { _ = g.Do(t.Context(), func(context.Context) error { panic("f") }) })
		require.NoError(t, g.TryLockContext(hour(t)))
		g.Unlock()

		// A tracer is called while names are taken.
		var panics bool
		q := c.Quorum(quorate.WithTracer(tracer(func(string) {
			if panics {
				panic("tracer")
			}
		})))
		g = mutex.All(q, []string{"a", "b"})
		panics = true
		assert.PanicsWithValue(t, "tracer", func() { _ = g.LockContext(t.Context()) })
		panics = false
		require.NoError(t, g.LockContext(hour(t)))
		g.Unlock()
	})
}

// endTracer is a Tracer that calls the function at the end of each hold.
type endTracer func(name string)

func (endTracer) AcquireStart(ctx context.Context, _ quorate.AcquireInfo) context.Context { return ctx }

func (endTracer) AcquireEnd(context.Context, quorate.AcquireResult) {}

func (f endTracer) HoldEnd(_ context.Context, r quorate.HoldResult) { f(r.Name) }

// Unlock has unlocked all names, and the Group, when the tracer panics at the
// end of a hold. That holds for each of the names.
func TestAllAndATracerThatPanicsInUnlock(t *testing.T) {
	for _, bad := range []string{"a", "b", "c", ""} {
		t.Run(bad, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := quoratetest.New(t, 3)
				panics := true
				q := c.Quorum(quorate.WithTracer(endTracer(func(name string) {
					if panics && (bad == "" || name == bad) {
						panic("tracer")
					}
				})))
				g := mutex.All(q, []string{"a", "b", "c"})
				require.NoError(t, g.LockContext(hour(t)))
				assert.PanicsWithValue(t, "tracer", g.Unlock)
				panics = false
				time.Sleep(time.Second)
				for _, name := range []string{"a", "b", "c"} {
					assert.Empty(t, c.Holders(name), name)
				}
				require.NoError(t, g.LockContext(hour(t)))
				g.Unlock()
			})
		})
	}
}
