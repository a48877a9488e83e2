package core

// This file owns the reading of a node's marker, the key in which a node keeps
// what it must know after a restart.

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// marker is a node's record of its own data: its incarnation, when that began,
// and whether it is caught up. mark.lua says how it is written.
type marker struct {
	inc      protocol.Incarnation
	born     time.Time // when its guard time began, by its own clock
	caughtUp bool      // it is caught up
	kept     bool      // it was caught up when it entered the set, and has lost nothing since
	run      string    // of the server: see transport.Info.Run

	guard time.Duration
}

// A marker that cannot be read is treated as none: the node is taken for one
// without data. That is safe: such a node does not vote.
func parseMarker(text string) (m marker, ok bool) {
	words := strings.Fields(text)
	if len(words) < 4 {
		return m, false
	}
	var numbers [4]int64
	for i := range numbers {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil && i != 2 { // which is the run
			return m, false
		}
		numbers[i] = n
	}
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return marker{
		inc: protocol.Incarnation(numbers[0]), born: time.UnixMilli(numbers[1]), run: words[2],
		caughtUp: strings.HasSuffix(text, " w"), kept: strings.HasSuffix(text, " l"), guard: time.Duration(min(numbers[3], most)) * time.Millisecond,
	}, true
}

// runOf is the run that a client tells the node as a connection begins. A
// server forgets that it was a replica when it has been without replicas for an
// hour, and has lost nothing then.
func runOf(info *transport.Info, text string) string {
	m, ok := parseMarker(text)
	switch {
	case !on(RuleRestart) && ok:
		return m.run
	case ok && info.Former == "" && info.RunID != "" && strings.HasPrefix(m.run, info.RunID+"+"):
		return m.run
	}
	return info.Run()
}

// recovers is what is left of the guard time when the node's clock shows now.
func (m *marker) recovers(now time.Time) time.Duration { return max(0, m.born.Add(m.guard).Sub(now)) }

// marker reads a node's marker, which is at the key of a configuration. One
// that is not of the incarnation that the connection began with says nothing:
// the node may have been another one's replica.
func (n *node) marker(ctx context.Context, key string) (marker, error) {
	ctx, cancel := context.WithTimeout(ctx, n.timeout(&n.q.set))
	defer cancel()
	q := n.q
	v, err := n.do(ctx, script.ReadShort(key)...)
	if err = q.members.checkSet(n.index, err); err != nil {
		return marker{}, err
	}
	m, ok := parseMarker(text(v, 0))
	if !ok {
		return m, errForgetful
	}
	return m, q.driver.checkIncarnation(n.index, m.inc)
}
