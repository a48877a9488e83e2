package quorate_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// The claims of all primitives have notes, while they wait and while they hold.
func TestNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := quoratetest.New(t, 3)
		q, eye := nodes.Quorum(), nodes.Quorum()
		for name, begin := range map[string]func(ctx context.Context, name string) (end func(), err error){
			"mutex": func(ctx context.Context, name string) (func(), error) {
				m := mutex.New(q, name)
				return func() { m.Unlock() }, m.LockContext(ctx)
			},
			"rwmutex": func(ctx context.Context, name string) (func(), error) {
				m := rwmutex.New(q, name)
				return func() { m.RUnlock() }, m.RLockContext(ctx)
			},
			"semaphore": func(ctx context.Context, name string) (func(), error) {
				s := semaphore.NewWeighted(q, name, 2)
				return func() { s.Release(2) }, s.Acquire(ctx, 2)
			},
			"leader": func(ctx context.Context, name string) (func(), error) {
				e := leader.New(q, name)
				return func() { _ = e.Resign(ctx) }, e.Campaign(ctx, "")
			},
			"group": func(ctx context.Context, name string) (func(), error) {
				g := mutex.All(q, []string{name})
				return func() { g.Unlock() }, g.LockContext(ctx)
			},
		} {
			note := "order 4711, “late” of " + name
			ctx := quorate.WithNote(t.Context(), note)
			end, err := begin(ctx, name)
			require.NoError(t, err)
			time.Sleep(time.Minute) // it is renewed
			r, err := inspect.Name(t.Context(), eye, name)
			require.NoError(t, err)
			require.Len(t, r.Holders, 1, name)
			assert.Equal(t, note, r.Holders[0].Note)
			end()
		}
		o := once.New(q, "once")
		err := o.DoContext(quorate.WithNote(t.Context(), "line\nbreak"), func(context.Context) error { return nil })
		assert.ErrorIs(t, err, quorate.ErrInvalid)
	})
}

// A note that cannot be shown on one line is refused before a node is asked.
func TestBadNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mutex.New(quoratetest.New(t, 3).Quorum(), "m")
		lock := func(note string) error {
			err := m.TryLockContext(quorate.WithNote(t.Context(), note))
			if err == nil {
				m.Unlock()
			}
			return err
		}
		for note, want := range map[string]string{
			strings.Repeat("é", 101): "202 bytes long; at most 200",
			"\xff":                   "not UTF-8",
			"line\nbreak":            "cannot be printed",
			"\x1b[2J":                "cannot be printed",
			"\u202e":                 "cannot be printed", // it turns the line around
			"\t":                     "cannot be printed",
		} {
			err := lock(note)
			assert.ErrorIs(t, err, quorate.ErrInvalid)
			assert.ErrorContains(t, err, want)
		}
		assert.NoError(t, lock(strings.Repeat("é", 100)))
		assert.NoError(t, lock(""))
		assert.NoError(t, lock(" : "))
	})
}
