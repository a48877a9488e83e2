package operator

// This file carries out the steps of change.Operator: it reads the members'
// markers and what they say of their disks, and has the nodes decide what
// follows. Nothing is decided here.

import (
	"context"
	"errors"
	"strings"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/resp"
)

// carryOut starts the steps that the call wants. Each has its own goroutine, so
// a node that does not answer costs a round its own timeout and no more.
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

// step carries out one step, and returns a function that reports its outcome to
// the call.
func (x *exchange) step(ctx context.Context, s change.OperatorStep) (told func()) {
	switch s.Kind {
	case change.OperatorLook:
		look, err := x.look(ctx, s)
		return func() {
			x.refuses(s.Member.Addr, err)
			x.o.Looked(x.q.Now(), s, look)
		}
	case change.OperatorSnapshot:
		p := x.snapshot(ctx, s.Member, s.Again)
		return func() { x.o.Begun(x.q.Now(), s, p) }
	}
	of := s.Succession
	err := x.q.Succeed(ctx, of.Register, of.TTL, of.NodeTimeout, &of.Run)
	return func() {
		if err != nil {
			x.set.Logger.Debug("quorate: a step of the change failed; retrying", "error", err)
		}
		c, refused := x.o.Config(), uint32(0)
		if f, is := errors.AsType[*fault.Failure](err); is {
			for _, n := range f.Nodes {
				if k := c.Place(n.Addr); k >= 0 && x.refuses(c.Members[k].Addr, n.Err) {
					refused |= 1 << c.Members[k].Number
				}
			}
		}
		if decided := x.o.Succeeded(x.q.Now(), s, refused); decided != nil {
			decide(x.q, decided)
		}
	}
}

// refuses reports whether err is a permanent refusal. It is kept for the call's
// error.
func (x *exchange) refuses(addr string, err error) bool {
	if err == nil || !fault.Permanent(err) {
		return false
	}
	if x.refused == nil {
		x.refused = map[string]error{}
	}
	x.refused[addr] = err
	return true
}

// look asks a member how far it is.
func (x *exchange) look(ctx context.Context, s change.OperatorStep) (change.MemberLook, error) {
	wait, caughtUp, err := x.q.Look(ctx, s.Member.Number, s.Stamp)
	if err != nil {
		return change.MemberLook{Silent: true, Refused: fault.Permanent(err)}, err
	}
	look := change.MemberLook{Wait: wait, CaughtUp: caughtUp}
	if s.Disk {
		look.Disk = x.persistence(ctx, s.Member)
	}
	return look, nil
}

// decide has the client follow a configuration like every other, and have the
// members moved.
func decide(q *core.Quorum, c *nodeset.Configuration) {
	q.Members.Change(-1, func(m *nodeset.Membership) { m.Decide(c) })
}

// says runs a command on a member and returns the last text of the answer. It
// waits as long as that node may take.
func (x *exchange) says(ctx context.Context, m nodeset.Member, words ...string) (string, error) {
	n := x.q.Nodes.At(m.Number)
	ctx, cancel := context.WithTimeout(ctx, n.Timeout(&x.set))
	defer cancel()
	v, err := n.Do(ctx, words...)
	return flow.Text(v, len(v)-1), err
}

// persistence asks a node what it keeps on its disk.
func (x *exchange) persistence(ctx context.Context, m nodeset.Member) change.Persistence {
	said, err := x.says(ctx, m, "INFO", "persistence")
	if err != nil {
		return x.unsaved(m, err)
	}
	info, server := report.InfoFields(said), x.q.Nodes.At(m.Number).Info()
	p := change.Persistence{
		Known: true, Run: server.Run(), Log: info["aof_enabled"] == "1", Always: server.FsyncAlways,
		Saving: info["rdb_bgsave_in_progress"] == "1", Saved: info["rdb_last_bgsave_status"] == "ok",
	}
	if p.Log || p.Saving {
		return p
	}
	points, err := x.says(ctx, m, "CONFIG", "GET", "save")
	if err != nil {
		return x.unsaved(m, err)
	}
	p.Snapshots = points != ""
	return p
}

// snapshot has a node write a snapshot.
func (x *exchange) snapshot(ctx context.Context, m nodeset.Member, again bool) change.Persistence {
	if again {
		x.set.Logger.Warn("quorate: node failed to write a snapshot; the change of the set waits for it: look at that server's log and disk", "node", m.Addr)
	}
	run := x.q.Nodes.At(m.Number).Info().Run() // before the command: one of a later run is begun again
	if _, err := x.says(ctx, m, "BGSAVE"); err != nil {
		return x.unsaved(m, err)
	}
	return change.Persistence{Known: true, Run: run, Saving: true}
}

// unsaved returns what is known of a member's disk after err. If the node
// refuses permanently, it is Refused, and the log says what an operator must
// look at.
func (x *exchange) unsaved(m nodeset.Member, err error) change.Persistence {
	e, refused := err.(resp.Error)
	if !refused || e.Code() == "ERR" && (strings.Contains(string(e), "in progress") || strings.Contains(string(e), "child process")) || e.Code() == "LOADING" || e.Code() == "BUSY" {
		return change.Persistence{}
	}
	x.set.Logger.Warn("quorate: cannot tell whether a node has saved the change of the set to disk; if you restart it, make sure that it does not load an older file",
		"node", m.Addr, "error", err)
	return change.Persistence{Known: true, Refused: true}
}
