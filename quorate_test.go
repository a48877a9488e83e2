package quorate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/setup"
)

func TestMain(m *testing.M) { e2e.MainWithNodes(m) }

// A setting that contradicts another is named, with the remedy.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		opt  quorate.Option
		says string
	}{
		{nil, "option 0 is nil; remove it"},
		{quorate.WithTTL(0), "WithTTL(0s)"},
		{quorate.WithTTL(-time.Second), "WithTTL(-1s)"},
		{quorate.WithTTL(1500 * time.Microsecond), "WithTTL(1.5ms)"},
		{quorate.WithTTL(10*time.Second + time.Microsecond), "whole number"},
		{quorate.WithTTL(9 * time.Second), "choose WithGuard(22s) or more"},
		{quorate.WithTTL(25 * time.Hour), "at most 24h"},
		{quorate.WithGuard(time.Second), "below 2*ttl + 2*skew = 20s"},
		{quorate.WithGuard(64 * time.Second / 3),
			"WithGuard(21.333333333s): must be a whole number of milliseconds, such as 21.334s"},
		{quorate.WithSkew(-1), "WithSkew"},
		{quorate.WithSkew(time.Second + time.Microsecond),
			"WithSkew(1.000001s): must be a whole number of milliseconds, such as 1.001s"},
		{quorate.WithNodeTimeout(0), "must be positive"},
		{quorate.WithNodeTimeout(200), "write 200*time.Millisecond"},
		{quorate.WithNodeTimeout(3 * time.Second), "choose at most 2s"},
		{quorate.WithMaxHold(-1), "WithMaxHold"},
		{quorate.WithLinger(-1), "WithLinger"},
		{quorate.WithRetention(time.Second), "WithRetention(1s)"},
		{quorate.WithRetention(time.Minute + 1),
			"WithRetention(1m0.000000001s): must be a whole number of milliseconds, such as 1m0.001s"},
		{quorate.WithPrefix("a{b"), "WithPrefix"},
		{quorate.WithPrefix("a\tb"), "WithPrefix"},
		{quorate.WithPrefix(""), "WithPrefix"},
	} {
		_, err := quorate.Connect(t.Context(), []string{"redis://127.0.0.1:1"}, c.opt)
		require.ErrorIs(t, err, quorate.ErrInvalid)
		require.ErrorContains(t, err, c.says)
	}
}

func TestConnectSaysWhatEachNodeSaid(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := quorate.Connect(ctx, []string{"redis://127.0.0.1:1", "redis://127.0.0.1:2"},
		quorate.WithLogger(nil))
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	e, ok := errors.AsType[*quorate.Error](err)
	require.True(t, ok)
	require.Len(t, e.Nodes, 2)
	require.ErrorContains(t, e.Nodes[0].Err, "refused")
	require.NotContains(t, err.Error(), `""`)

	_, err = quorate.Connect(ctx, []string{"not a url"})
	require.ErrorIs(t, err, quorate.ErrInvalid)
}

// The kinds are constants of their own; the core's events have the same.
func TestEventKinds(t *testing.T) {
	for kind, is := range map[quorate.EventKind]setup.EventKind{
		quorate.EventLost: setup.EventLost, quorate.EventBareHold: setup.EventBareHold,
		quorate.EventSetChanged: setup.EventSetChanged,
		quorate.EventNodeUp:     setup.EventNodeUp, quorate.EventNodeDown: setup.EventNodeDown,
		quorate.EventNodeLeft:       setup.EventNodeLeft,
		quorate.EventNodeRecovering: setup.EventNodeRecovering, quorate.EventNodeCaughtUp: setup.EventNodeCaughtUp,
		quorate.EventNodeRefuses: setup.EventNodeRefuses, quorate.EventNodeAccepts: setup.EventNodeAccepts,
		quorate.EventClockJumped: setup.EventClockJumped, quorate.EventRecovering: setup.EventWaiting,
	} {
		require.Equal(t, string(is), kind.String())
	}
}
