package peers

// The handshake: what a connection asks a node before it is used, what makes a
// server unfit to be a node, and the marker, in which a node stores what it
// must know after a restart. A handshake has two steps: the queries of probe,
// then what hello makes of the answers. No request of a claim is sent before
// both are complete.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// answer returns a function that stores an answer in to, or records that the
// server refuses the question to this user or has another program's data at the
// key. Such a node must not look brand-new, or an operator might declare it
// brand-new.
func (p *probed) answer(to *string) func([]resp.Value, error) {
	return func(v []resp.Value, err error) {
		switch e, ok := errors.AsType[resp.Error](err); {
		case err == nil:
			*to = flow.Text(v, 0)
		case ok && (e.Code() == "NOPERM" || e.Code() == "WRONGTYPE"):
			p.refused = e
		}
	}
}

// forbids records an answer that says that the server lacks the command, or
// forbids it to this user.
func (p *probed) forbids(answer error) {
	e, ok := errors.AsType[resp.Error](answer)
	if ok && (e.Code() == "NOPERM" || strings.HasPrefix(string(e), "ERR unknown command")) {
		p.refused = e
	}
}

// probe returns the questions whose answers hello needs. All are sent at once,
// so they cost one round trip together. The time is asked for right after the
// marker, because the remaining guard time is the difference of the two, by the
// node's own clock.
func (h *handshake) probe() []transport.Command {
	n, ps := h.n, h.n.ps
	p := &h.probed
	*p = probed{sent: ps.Now(), home: ps.Members.Home()}
	marker := p.home.Marker(ps.Set.Prefix)
	keys := script.SpreadKeys(marker, cmp.Or(ps.Set.Base, ps.Set.Prefix))
	if n.Slot != "" {
		// So that a server that has only a part of the slot refuses.
		keys = []string{marker, script.AbsentKey(marker)}
	}
	cmds := []transport.Command{
		&flow.Request{Command: resp.AppendCommand(nil, script.ReadLong(script.SetKey(ps.Set.Prefix))...),
			Then: p.answer(&p.set)},
		&flow.Request{Command: resp.AppendCommand(nil, script.ReadShort(marker)...),
			Then: p.answer(&p.marker)},
		&flow.Request{Command: resp.AppendCommand(nil, append([]string{"EXISTS"}, keys...)...),
			Then: func(_ []resp.Value, err error) {
				if p.cluster = fault.ClusterMode(err); err != nil {
					p.marker = ""
				}
				if e, ok := errors.AsType[resp.Error](err); ok && e.Code() == "NOPERM" {
					p.refused = e
				}
			}},
		&flow.Request{Command: resp.AppendCommand(nil, "TIME"), Then: func(v []resp.Value, err error) {
			if clock, e := script.DecodeTime(v); err == nil && e == nil {
				p.clock, p.clockAt = clock, ps.Now()
			}
			p.forbids(err)
		}},
	}
	// Call a script that no server has, to learn now, and not at the first
	// lock, whether the user may run scripts.
	cmds = append(cmds, &flow.Request{Command: resp.AppendCommand(nil, "EVALSHA", strings.Repeat("0", 40),
		"0"), Then: func(_ []resp.Value, err error) {
		p.forbids(err)
	}})
	for all := script.All(); len(all) > 0; {
		// A server that wants a password accepts at most 10 words before AUTH.
		some := all[:min(8, len(all))]
		all = all[len(some):]
		words := []string{"SCRIPT", "EXISTS"}
		for _, s := range some {
			words = append(words, s.SHA)
		}
		cmds = append(cmds, &flow.Request{Command: resp.AppendCommand(nil, words...),
			Then: func(v []resp.Value, err error) {
				for i, s := range some {
					// If the user may not ask, or the answer is malformed, send all
					// scripts.
					if err != nil || len(v) != len(some) || v[i].Int != 1 {
						p.missing = append(p.missing, s)
					}
				}
			}})
	}
	return cmds
}

// hello returns the first commands of a connection: the scripts that the node
// lacks, and the news of a restart. The news comes first so that no claim is
// made on a node before the node knows that its guard time begins. This is the
// second restart detector: even with fsync=always, the newest writes may be
// gone although the marker survived.
func (h *handshake) hello(info transport.Info) ([]transport.Command, error) {
	n, ps := h.n, h.n.ps
	if err := suits(info); err != nil {
		return nil, err
	}
	p := &h.probed
	if p.cluster {
		return nil, fault.ErrClusterMode
	}
	if p.refused != nil {
		return nil, p.refused
	}
	// Check in this order: can this server be a node; which member is it; has
	// it lost anything.
	run := info.Run()
	if run == "" {
		return nil, fault.NoInfo(info.NoInfo)
	}
	// Membership may require a step before any other command, such as the move
	// to the configuration that counts. Only the scripts come before it.
	own, done, err := h.meet(run)
	cmds := append(flow.LoadCommands(p.missing), own...)
	if done {
		return cmds, err
	}
	ps.Driver.CarryOut(ps.Driver.Client.Connect(ps.Now(), n.Index, info.RoundTrip))
	// The marker was read at the home of the probe. If the set has become known
	// since then, that key no longer counts, and the node is marked at the new
	// one.
	if m, ok := script.ParseMarker(p.marker); ok && m.Names(run) && !p.clock.IsZero() &&
		!m.Born.After(p.clock) && p.home == ps.Members.Home() {
		h.show(m.Inc)
		p.wait = m.Recovers(p.clock)
		// Call this after show, because bounds of an earlier incarnation do not
		// count.
		ps.Driver.showTime(n.Index, nodeset.Reading{Sent: p.sent, Received: p.clockAt,
			Micros: p.clock.UnixMicro()})
		return cmds, nil
	}
	return append(cmds, &flow.Request{Command: script.AppendMark(nil, ps.Members.MarkerKey(),
		NewID(), run, ""), Then: func(v []resp.Value, err error) {
		if got, age, e := script.DecodeMarker(v); err == nil && e == nil {
			h.show(got)
			p.wait = max(0, ps.Guard()-age)
		}
	}}, n.askTime()), nil
}

// leaving tells the state machines that the connection has ended if it fails
// before it is up, because the link does not call Down for it.
func (h *handshake) leaving() {
	n := h.n
	n.ps.Members.Change(-1, func(m *nodeset.Membership) { m.Down(n.Index) }) //mutant:Handshake
}

// show tells the Client which incarnation the node has at the start of the
// connection. Until then no push of the node counts.
func (h *handshake) show(inc protocol.Incarnation) {
	n, ps := h.n, h.n.ps
	ps.Driver.CarryOut(ps.Driver.Client.Show(ps.Now(), n.Index, inc))
}

// suits returns why a server cannot be a node, or nil. A server that hides its
// version passes. Redis 5 is the first version that replicates the effects of a
// script instead of the script, so that a script may read the clock and then
// write.
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
	if n, err := strconv.Atoi(major); err == nil && n < 5 {
		return fmt.Errorf("server version %s %w: its scripts cannot write after reading the clock; use Redis 5.0 "+
			"or later, or Valkey",
			info.Version, fault.ErrTooOld)
	}
	return nil
}

// Marker reads a node's marker at the key of a configuration. A marker of
// another incarnation than the connection began with proves nothing: the node
// may have been a replica in the meantime.
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
