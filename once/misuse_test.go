package once_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/once"
)

// forged is an option by embedding only.
type forged struct{ quorate.OnceOption }

func TestMisuse(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	closed := e2e.OpenAt(t, c.URLs(), e2e.Timing(quiet))
	late := once.New(closed, "o")
	require.NoError(t, closed.Close())
	o, unusable := once.New(q, "o"), once.New(q, "a{b}")
	ctx := t.Context()
	zero := new(once.Once)
	nothing := func() {}

	for _, c := range []struct {
		what string
		call func()
		says string
	}{
		{"zero Do", func() { zero.Do(nothing) }, "use once.New"},
		{"zero DoContext", func() { _ = zero.DoContext(ctx, never(t)) }, "use once.New"},
		{"zero Status", func() { _, _ = zero.Status(ctx) }, "use once.New"},
		{"zero Reset", func() { _ = zero.Reset(ctx) }, "use once.New"},
		{"Do of nil", func() { o.Do(nil) }, "function is nil"},
		{"DoContext of nil", func() { _ = o.DoContext(ctx, nil) }, "function is nil"},
		{"nil Quorum", func() { once.New(nil, "o") }, "use quorate.New or quorate.Connect"},
		{"zero Quorum", func() { once.Func(new(quorate.Quorum), "o", nothing) },
			"use quorate.New or quorate.Connect"},
		{"wrong option", func() { once.New(q, "o", quorate.WithTTL(-1)) }, "once.New: WithTTL(-1ns)"},
		{"negative KeepFor", func() { once.New(q, "o", once.KeepFor(-1)) }, "KeepFor(-1ns)"},
		{"short KeepFor", func() { once.New(q, "o", once.KeepFor(time.Second)) }, "below the retention of 5m0s"},
		{"uneven KeepFor", func() { once.New(q, "o", once.KeepFor(time.Hour+1)) }, "whole number"},
		{"nil option", func() { once.New(q, "o", once.WithDurable(), nil) }, "option 1 is nil; remove it"},
		{"an option of the caller's own", func() { once.New(q, "o", forged{quorate.WithTTL(time.Second)}) },
			"option 0, a once_test.forged, was not made by this library"},
		{"unusable name", func() { unusable.Do(nothing) }, "contains a brace"},
		{"unusable name of a value", func() { once.Value(q, "", func() int { return 0 })() }, "the name is empty"},
	} {
		t.Run(c.what, func(t *testing.T) { assert.Contains(t, panicText(c.call), c.says) })
	}

	assert.ErrorIs(t, unusable.DoContext(ctx, never(t)), quorate.ErrInvalid)
	assert.ErrorIs(t, unusable.Reset(ctx), quorate.ErrInvalid)
	_, err := unusable.Status(ctx)
	assert.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorIs(t, late.DoContext(ctx, never(t)), quorate.ErrClosed)
	assert.ErrorIs(t, late.Reset(ctx), quorate.ErrClosed)
	_, err = late.Status(ctx)
	assert.ErrorIs(t, err, quorate.ErrClosed)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	assert.ErrorIs(t, o.DoContext(ended, never(t)), context.Canceled)

	// In sync it never ends; with a context it ends with that.
	assert.ErrorIs(t, o.DoContext(ctx, func(ctx context.Context) error {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		return o.DoContext(short, never(t))
	}), context.DeadlineExceeded)
}

// The name is in use for something else.
func TestNameInUse(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	o := once.New(q, "o")
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Set(t.Context(), "o", "another client's", quiet).Err())
	}
	_, err := o.Status(t.Context())
	assert.ErrorIs(t, err, quorate.ErrHeld)
	assert.ErrorContains(t, err, "another library holds the key of that name")
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Del(t.Context(), "o").Err())
	}

	// What a later version of this package might record.
	o.Do(func() {})
	for i := range c.Len() {
		key := "quorate:{o}:r"
		text, err := c.Node(i).Client().Get(t.Context(), key).Result()
		require.NoError(t, err)
		text = strings.Replace(text, `"once":1`, `"once":2`, 1)
		require.NoError(t, c.Node(i).Client().Set(t.Context(), key, text, 0).Err())
	}
	o = once.New(q, "o")
	err = o.DoContext(t.Context(), never(t))
	assert.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorContains(t, err, "in use by another primitive")
	_, err = o.Status(t.Context())
	assert.ErrorIs(t, err, quorate.ErrInvalid)
	require.NoError(t, o.Reset(t.Context()), "which helps")
	o.Do(func() {})
}

func TestNoQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		q := c.Quorum(e2e.Timing(ttl))
		o := once.New(q, "o")
		delay(c, time.Hour)
		_, err := o.Status(t.Context())
		assert.ErrorIs(t, err, quorate.ErrNoQuorum)
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		for _, err := range []error{o.DoContext(ctx, never(t)), o.Reset(ctx)} {
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
		delay(c, 0)
	})
}

// Do cannot say that the nodes refuse, so it tells the log and goes on.
func TestDoGoesOnTrying(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var log e2e.Log
	q := e2e.Open(t, c, e2e.Timing(quiet), log.Option())
	o := once.New(q, "o")
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().LPush(t.Context(), "quorate:{o}:r", "a list").Err())
	}
	err := o.DoContext(t.Context(), never(t))
	assert.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.ErrorContains(t, err, "WRONGTYPE")
	runs := 0
	done := later(func() error {
		o.Do(func() { runs++ })
		return nil
	})
	require.True(t, e2e.Eventually(func() bool { return len(log.Lines("once keeps trying")) > 0 }))
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Del(t.Context(), "quorate:{o}:r").Err())
	}
	require.NoError(t, e2e.Receive(t, done))
	assert.Equal(t, 1, runs)
}

func TestDurable(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context) error { return nil }
	for _, c := range []struct {
		what string
		opt  redistest.Option
		says string
	}{
		{"no file", redistest.WithArgs(), "appendonly is no"},
		{"snapshots", redistest.WithArgs("--save", "60 1"), "appendonly is no"},
		{"unflushed", redistest.WithAOF("no"), "appendfsync is no"},
		{"every second", redistest.WithAOF("everysec"), ""},
		{"always", redistest.WithAOF("always"), ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			servers := cluster(t, c.opt)
			q := e2e.Open(t, servers, e2e.Timing(quiet))
			o := once.New(q, "o", once.WithDurable())
			if c.says == "" {
				require.NoError(t, o.DoContext(t.Context(), nothing))
				return
			}
			err := o.DoContext(t.Context(), never(t))
			assert.ErrorIs(t, err, once.ErrNotDurable)
			assert.ErrorContains(t, err, servers.Node(0).Addr()+" "+c.says)
			assert.Contains(t, panicText(func() { o.Do(func() {}) }), c.says)
			// A majority suffices.
			for i := range 2 {
				client := servers.Node(i).Client()
				require.NoError(t, client.ConfigSet(t.Context(), "appendonly", "yes").Err())
				require.NoError(t, client.ConfigSet(t.Context(), "appendfsync", "everysec").Err())
			}
			require.NoError(t, o.DoContext(t.Context(), nothing))
		})
	}
}

func TestVetCatchesACopy(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "vet", "./testdata/copied").CombinedOutput()
	require.Error(t, err, "%s", out)
	assert.Contains(t, string(out), "byValue passes lock by value: github.com/quorate/quorate/once.Once")
	assert.Contains(t, string(out), "assignment copies lock value to b")
}
