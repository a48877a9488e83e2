package peers

// This file owns what a connection asks a node before it is used, what makes a
// server unfit to be a node, and the marker, in which a node keeps what it must
// know after a restart. A handshake is two steps: the questions of probe, then
// what hello (node.go) makes of the answers. No request of a claim is sent
// before both have ended.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/rule"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// probed is what a node has answered as a connection began. If the node knows
// the scripts and its marker names its run, there is nothing to tell it, and
// the handshake is over after one round trip.
type probed struct {
	set     string      // what it has recorded of its set
	home    script.Home // the marker is of that
	marker  string
	clock   int64           // its time, in milliseconds; 0: unknown
	sent    protocol.Time   // when it was asked for that
	missing []script.Script // that it does not know
	wait    time.Duration   // how much of its guard time is left as the connection begins
	cluster bool            // it is in cluster mode
	refused error           // it does not say whether it is
}

// perProbe is how many scripts one command asks for. A server that wants a
// password accepts at most 10 words from a client before AUTH.
const perProbe = 8

// probe returns the questions whose answers hello needs. All are sent at once,
// so they cost one round trip together. The time is asked for right behind the
// marker: what is left of the guard time is the difference of the two, by the
// node's own clock.
func (n *Node) probe() []transport.Command {
	ps := n.ps
	p := &n.probed
	*p = probed{sent: ps.Now(), home: ps.Members.Home()}
	marker := p.home.Marker(ps.Set.Prefix)
	keys := script.SpreadKeys(marker, cmp.Or(ps.Set.Base, ps.Set.Prefix))
	if n.Slot != "" {
		keys = []string{marker, script.AbsentKey(marker)} // so a server that has a part of the slot refuses
	}
	cmds := []transport.Command{
		&flow.Request{Command: resp.AppendCommand(nil, script.ReadLong(script.SetKey(ps.Set.Prefix))...), Then: func(v []resp.Value, err error) {
			if err == nil {
				p.set = flow.Text(v, 0)
			}
		}},
		&flow.Request{Command: resp.AppendCommand(nil, script.ReadShort(marker)...), Then: func(v []resp.Value, err error) {
			if err == nil {
				p.marker = flow.Text(v, 0)
			}
		}},
		&flow.Request{Command: resp.AppendCommand(nil, append([]string{"EXISTS"}, keys...)...), Then: func(_ []resp.Value, err error) {
			if p.cluster = fault.ClusterMode(err); err != nil {
				p.marker = ""
			}
			if e, ok := errors.AsType[resp.Error](err); ok && e.Code() == "NOPERM" {
				p.refused = e
			}
		}},
		&flow.Request{Command: resp.AppendCommand(nil, "TIME"), Then: func(v []resp.Value, err error) {
			if millis, e := script.DecodeTime(v); err == nil && e == nil {
				p.clock = millis
			}
		}},
	}
	for all := script.All(); len(all) > 0; {
		some := all[:min(perProbe, len(all))]
		all = all[len(some):]
		words := []string{"SCRIPT", "EXISTS"}
		for _, s := range some {
			words = append(words, s.SHA)
		}
		cmds = append(cmds, &flow.Request{Command: resp.AppendCommand(nil, words...), Then: func(v []resp.Value, err error) {
			for i, s := range some {
				// If the user may not ask, or the answer makes no sense, all
				// are sent.
				if err != nil || len(v) != len(some) || v[i].Int != 1 {
					p.missing = append(p.missing, s)
				}
			}
		}})
	}
	return cmds
}

// oldest is the first version of Redis that replicates what a script has
// written and not the script: so a script may read the clock and then write.
const oldest = 5

// suits refuses what can be no node. A server that hides its version passes.
func suits(info transport.Info) error {
	switch {
	case info.Role == "sentinel":
		return fault.ErrSentinel
	case info.Role != "slave":
	case info.Master == "":
		return fault.ErrReplica
	default:
		return fmt.Errorf("%w; its master is %s", fault.ErrReplica, info.Master)
	}
	major, _, _ := strings.Cut(info.Version, ".")
	if n, err := strconv.Atoi(major); err == nil && n < oldest {
		return fmt.Errorf("server version %s %w: %s", info.Version, fault.ErrTooOld, fault.NeedsEffects)
	}
	return nil
}

// runOf is the run that a client tells the node as a connection begins. A
// server forgets that it was a replica when it has been without replicas for an
// hour, and has lost nothing then.
func runOf(info *transport.Info, text string) string {
	m, ok := script.ParseMarker(text)
	switch {
	case !rule.On(rule.Restart) && ok:
		return m.Run
	case ok && info.Former == "" && info.RunID != "" && strings.HasPrefix(m.Run, info.RunID+"+"):
		return m.Run
	}
	return info.Run()
}

// Marker reads a node's marker, which is at the key of a configuration. One
// that is not of the incarnation that the connection began with says nothing:
// the node may have been another one's replica.
func (n *Node) Marker(ctx context.Context, key string) (script.Marker, error) {
	ctx, cancel := context.WithTimeout(ctx, n.Timeout(&n.ps.Set))
	defer cancel()
	ps := n.ps
	v, err := n.Do(ctx, script.ReadShort(key)...)
	if err = ps.Members.CheckSet(n.Index, err); err != nil {
		return script.Marker{}, err
	}
	m, ok := script.ParseMarker(flow.Text(v, 0))
	if !ok {
		return m, fault.ErrForgetful
	}
	return m, ps.Driver.CheckIncarnation(n.Index, m.Inc)
}
