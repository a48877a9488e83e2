package core

// This file carries out the steps of change.Operator: it reads the members'
// markers and what they say of their disks, and has the nodes decide what
// follows. Nothing is decided here.

import (
	"context"
	"errors"
	"strings"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// carryOut begins the steps that the call wants. Each has a goroutine of its
// own, so a node that does not answer costs a round its own timeout and no
// more.
func (x *exchange) carryOut() {
	ctx, todo := x.steps, x.o.Out
	x.o.Out = nil
	for _, s := range todo {
		x.under.Go(func() {
			told := x.step(ctx, s)
			select {
			case x.tells <- told:
			case <-ctx.Done(): // its answer is not used any more
			}
		})
	}
}

// step carries out one step, and returns what tells the call of it.
func (x *exchange) step(ctx context.Context, s change.OperatorStep) (told func()) {
	q := x.q
	switch s.Kind {
	case change.OperatorLook:
		look, err := q.lookAtMember(ctx, s)
		return func() {
			x.refuses(s.Member.Addr, err)
			x.o.Looked(q.now(), s, look)
		}
	case change.OperatorSnapshot:
		p := q.nodes.at(s.Member.Number).snapshot(ctx, s.Again)
		return func() { x.o.Begun(q.now(), s, p) }
	}
	err := q.succeed(ctx, s.Succession)
	return func() {
		if err != nil {
			q.set.Logger.Debug("quorate: a step of an exchange of nodes has failed and is retried", "error", err)
		}
		c, refused := x.o.Config(), uint32(0)
		if f, is := errors.AsType[*Failure](err); is {
			for _, n := range f.Nodes {
				if k := c.Place(n.Addr); k >= 0 && x.refuses(n.Addr, n.Err) {
					refused |= 1 << c.Members[k].Number
				}
			}
		}
		// The operator's client follows like every other: Membership has the
		// members moved.
		if decided := x.o.Succeeded(q.now(), s, refused); decided != nil {
			q.members.change(-1, func(m *nodeset.Membership) { m.Decide(decided) })
		}
	}
}

// refuses reports whether an error is a refusal that no other round changes. It
// is kept for the error of the call.
func (x *exchange) refuses(addr string, err error) bool {
	if err == nil || !forGood(err) {
		return false
	}
	if x.refused == nil {
		x.refused = map[string]error{}
	}
	x.refused[addr] = err
	return true
}

// lookAtMember asks a member how far it is. One that this client has no
// connection to counts as silent: follow makes a node after Membership has
// given it a number, so there may be none yet.
func (q *Quorum) lookAtMember(ctx context.Context, s change.OperatorStep) (change.MemberLook, error) {
	if s.Member.Number >= q.nodes.size() {
		return change.MemberLook{Silent: true}, errNoAnswer
	}
	n := q.nodes.at(s.Member.Number)
	n.tried(ctx)
	res := n.lookAt(ctx, script.HomeOf(s.Stamp).Marker(q.set.Prefix), true)
	if res.Err != nil {
		return change.MemberLook{Silent: true, Refused: forGood(res.Err)}, res.Err
	}
	look := change.MemberLook{Wait: res.Wait, CaughtUp: res.CaughtUp}
	if s.Disk {
		look.Disk = n.persistence(ctx)
	}
	return look, nil
}

// persistence asks a node what it keeps on its disk.
func (n *node) persistence(ctx context.Context) change.Persistence {
	ctx, cancel := context.WithTimeout(ctx, n.timeout(&n.q.set))
	defer cancel()
	v, err := n.do(ctx, "INFO", "persistence")
	if err != nil {
		return n.unsaved(err)
	}
	info := infoFields(text(v, 0))
	p := change.Persistence{
		Known: true, Run: n.info().Run(), Log: info["aof_enabled"] == "1", Always: n.info().FsyncAlways,
		Saving: info["rdb_bgsave_in_progress"] == "1", Saved: info["rdb_last_bgsave_status"] == "ok",
	}
	if p.Log || p.Saving {
		return p
	}
	if v, err = n.do(ctx, "CONFIG", "GET", "save"); err != nil {
		return n.unsaved(err)
	}
	p.Snapshots = text(v, 1) != ""
	return p
}

// snapshot has a node write a snapshot.
func (n *node) snapshot(ctx context.Context, again bool) change.Persistence {
	if again {
		n.q.set.Logger.Warn("quorate: a node has failed to write a snapshot; an exchange of nodes waits for it", "node", n.addr)
	}
	ctx, cancel := context.WithTimeout(ctx, n.timeout(&n.q.set))
	defer cancel()
	run := n.info().Run() // before the command: one of a later run is begun again
	if _, err := n.do(ctx, "BGSAVE"); err != nil {
		return n.unsaved(err)
	}
	return change.Persistence{Known: true, Run: run, Saving: true}
}

// unsaved says whether an error is a node's refusal, which no other try
// changes. The log says what an operator has to see to.
func (n *node) unsaved(err error) change.Persistence {
	e, refused := err.(resp.Error)
	if !refused || e.Code() == "ERR" && (strings.Contains(string(e), "in progress") || strings.Contains(string(e), "child process")) || e.Code() == "LOADING" || e.Code() == "BUSY" {
		return change.Persistence{}
	}
	n.q.set.Logger.Warn("quorate: it is unknown whether a node has an exchange of nodes on its disk; if it is restarted, see that it does not come back with a file of before the exchange",
		"node", n.addr, "error", err)
	return change.Persistence{Known: true, Refused: true}
}

// infoFields returns the lines of an INFO.
func infoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}

// succeed carries out the steps of a Succession.
func (q *Quorum) succeed(ctx context.Context, s *change.Succession) error {
	own := q.set
	own.TTL, own.NodeTimeout = s.TTL, s.NodeTimeout
	spec, err := q.NewSpec(Spec{Name: s.Register, Weight: 1, Capacity: 1, Set: &own})
	if err != nil {
		return err
	}
	spec.succession = true
	_, err = q.Register(spec).run(ctx, &s.Run, nil)
	return err
}
