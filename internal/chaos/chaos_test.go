package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/chaos/client"
	"github.com/quorate/quorate/internal/chaos/judge"
	"github.com/quorate/quorate/internal/chaos/nemesis"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if isWorker, status := client.AsWorker(); isWorker {
		os.Exit(status)
	}
	if isOperator, status := nemesis.AsOperator(); isOperator {
		os.Exit(status)
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// small is a plan for a test: little time, and faults close to each other.
func small(t *testing.T, control string) plan {
	t.Helper()
	p := defaults()
	p.Rate = 3
	p.Tracks = lo.Without(p.Tracks, nemesis.MemberTrack) // an exchange takes longer
	p.For, p.Calm, p.Pace, p.Clients, p.MinRate = 10*time.Second, 2*time.Second, time.Second, 3, 0.3
	p.Bound = client.Patience // the machine may be busy
	require.NoError(t, p.control(control))
	require.NoError(t, p.check())
	return p
}

// carryOut runs p. It is repeated where the machine is so busy that the run
// shows too little.
func carryOut(t *testing.T, p plan) *result {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes a while")
	}
	for again := 2; ; again-- {
		var out strings.Builder
		r, err := run(t.Context(), p, &out)
		if again > 0 && errors.Is(err, errBusy) {
			t.Log(err)
			continue
		}
		redistest.SkipIfMissing(t, err)
		require.NoError(t, err, out.String())
		r.print(&out)
		t.Log(out.String())
		return r
	}
}

// The library stands what the nemesis does. This has the package's part of the
// machine to itself.
func TestChaos(t *testing.T) {
	r := carryOut(t, small(t, client.ControlNone))
	assert.Empty(t, r.Violations)
	assert.Zero(t, r.Models.Unknown)
	assert.NotEmpty(t, r.Faults)
	assert.Contains(t, markdown([]*result{r}, ""), "| **violations** | **0** |")
}

// Nor does one node alone, which loses all its data now and then.
func TestChaosOnOneNode(t *testing.T) {
	p := small(t, client.ControlNone)
	p.Nodes = 1
	p.alone()
	require.NoError(t, p.check())
	r := carryOut(t, p)
	assert.Empty(t, r.Violations)
	assert.NotEmpty(t, r.Losses)
}

// A resource without tokens is corrupted when clients sleep through their
// leases, however good the lock is: what cannot fail shows nothing.
//
// A client that sleeps must hold the lock and then write: few sleeps of a short
// run do, so there are several runs.
func TestControlUnfenced(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		p := small(t, client.ControlUnfenced)
		p.Seed += seed
		r := carryOut(t, p)
		assert.Empty(t, r.tooMany(), "it is not the lock that failed")
		if len(r.Resource.Corrupt) > 0 {
			assert.True(t, r.asExpected())
			return
		}
	}
	assert.Fail(t, "nothing was corrupted")
}

// Rivals that take other keys than they say are seen alongside our holds.
func TestControlRival(t *testing.T) {
	t.Parallel()
	p := small(t, client.ControlRival)
	p.For, p.Tracks = 3*time.Second, []string{"sleep"}
	r := carryOut(t, p)
	assert.True(t, r.asExpected())
	assert.Empty(t, r.tooMany(), "it is not the lock that failed")
}

// Ctrl-C ends everything, and says that the run has shown nothing.
func TestInterrupted(t *testing.T) {
	p := small(t, client.ControlNone)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := run(ctx, p, &strings.Builder{})
	redistest.SkipIfMissing(t, err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestFlags(t *testing.T) {
	s, err := parse([]string{"-nodes", "3,5", "-for", "7s", "-seed", "9", "-work", "mutex"})
	require.NoError(t, err)
	require.Len(t, s.plans, 2)
	assert.Equal(t, 5, s.plans[1].Nodes)
	assert.Equal(t, []string{"mutex"}, s.plans[1].Work)
	assert.Contains(t, s.plans[1].Tracks, nemesis.MemberTrack)
	assert.ElementsMatch(t, lo.Without(nemesis.AllTracks(), "drift", "misuse", "overlap", "parted"),
		s.plans[1].Tracks, "all tracks at once")
	s, err = parse([]string{"-nodes", "1,3"})
	require.NoError(t, err)
	assert.NotContains(t, s.plans[0].Work, "once", "it is forgotten with the only node's data")
	assert.NotContains(t, s.plans[0].Tracks, nemesis.MemberTrack)
	assert.Contains(t, s.plans[1].Work, "once")
	s, err = parse([]string{"-control", "redsync"})
	require.NoError(t, err)
	assert.Equal(t, lo.Without(nemesis.TrackNames, nemesis.MemberTrack), s.plans[0].Tracks,
		"a redsync client follows no set")
	for _, wrong := range [][]string{
		{"-nodes", "x"}, {"-nodes", "2"}, {"-nodes", "1", "-work", "once"}, {"-tracks", "boats"},
		{"-work", "knitting"}, {"-control", "x"}, {"-store", "tape"}, {"-for", "-1s"}, {"-nonsense"},
		{"-simulated", "chaos_test.go"}, {"-simulated", "none"}, {"-report", "doc.go"}, {"-report", "none"},
	} {
		_, err := parse(wrong)
		assert.Error(t, err, "%v", wrong)
	}
	assert.Equal(t, record.ExitVoid, command(t.Context(), []string{"-work", "knitting"}, &strings.Builder{}))
}

// A report replaces the one before, and leaves what is written by hand.
func TestReportKeepsTheDocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chaos.md")
	require.NoError(t, os.WriteFile(file, []byte("by hand\n"+begin+"of before\n"+end+"\nby hand, too\n"), 0o600))
	for range 2 {
		require.NoError(t, fill(file, "new\n"))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, "by hand\n"+begin+"new\n"+end+"\nby hand, too\n", string(text))
	}
	_, _, err := around("../../docs/internals/chaos.md") // where make chaos puts its report
	require.NoError(t, err)
}

// What stands still breaks no rule, and shows nothing.
func TestEnough(t *testing.T) {
	r := &result{Plan: plan{For: time.Second, MinRate: 2}}
	r.Plan.Work, r.History = []string{"mutex"}, &judge.History{}
	require.Error(t, r.enough())
	held := &judge.Operation{Kind: "mutex", Begin: 1}
	r.History.Ops = []*judge.Operation{held, held}
	require.NoError(t, r.enough())
	held.Phase = judge.AllWell
	require.Error(t, r.enough(), "only what was done under faults counts")
	assert.ErrorContains(t, (&result{Summary: nemesis.Summary{Apart: nemesis.Skew}}).enough(), "off by 1s")
}
