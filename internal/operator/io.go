package operator

// This file asks the members for a call, as change.IO says: it reads their
// markers and what they say of their disks, and has them decide what follows.
// Nothing is decided here.

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/resp"
)

// asker is the change.IO of a call. The call is stopped when ctx ends.
type asker struct {
	*exchange
	ctx context.Context
}

func (a asker) Now() protocol.Time               { return a.q.Now() }
func (a asker) Config() *nodeset.Configuration   { return a.config() }
func (a asker) Report(p change.OperatorProgress) { a.report(p) }
func (a asker) Stopped() bool                    { return a.ctx.Err() != nil }

func (asker) Ballot() nodeset.Ballot { return nodeset.NewBallot(time.Now(), peers.Chance(), "") }

// Each runs f in a goroutine for each call, so a node that does not answer
// costs a round its own timeout and no more.
func (a asker) Each(n int, f func(io change.IO, k int)) {
	var under sync.WaitGroup
	for k := range n {
		under.Go(func() { f(a, k) })
	}
	under.Wait()
}

func (a asker) Sleep(until protocol.Time) {
	timer := time.NewTimer(until.Sub(a.q.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.ctx.Done():
	}
}

// Within gives f no time once Close has begun: to undo needs the nodes, and
// Close is about to end their connections.
func (a asker) Within(d time.Duration, f func(io change.IO)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), d)
	defer cancel()
	defer context.AfterFunc(a.q.Life, cancel)()
	f(asker{a.exchange, ctx})
}

func (a asker) Look(m nodeset.Member, of nodeset.Stamp, disk bool) (look change.MemberLook) {
	wait, caughtUp, err := a.q.Look(a.ctx, m.Number, of)
	if err != nil {
		if look.Silent = true; fault.Permanent(err) {
			look.Refused = err
		}
		return look
	}
	if look = (change.MemberLook{Wait: wait, CaughtUp: caughtUp}); disk {
		look.Disk = a.persistence(m)
	}
	return look
}

func (a asker) Succeed(s *change.Succession) []error {
	err := a.q.Succeed(a.ctx, s.Register, s.TTL, s.NodeTimeout, &s.Run)
	if err != nil && !a.Stopped() {
		a.set.Logger.Debug("quorate: a step of the change failed; retrying", "error", err)
	}
	if decided, _ := s.Decided(); decided != nil {
		a.q.Members.Change(-1, func(m *nodeset.Membership) { m.Decide(decided) })
	}
	refusals := make([]error, len(s.Of.Members))
	if f, is := errors.AsType[*fault.Failure](err); is {
		for _, n := range f.Nodes {
			if k := s.Of.Place(n.Addr); k >= 0 && fault.Permanent(n.Err) {
				refusals[k] = n.Err
			}
		}
	}
	return refusals
}

// says runs a command on a member and returns the last text of the answer. It
// waits as long as that node may take.
func (a asker) says(m nodeset.Member, words ...string) (string, error) {
	n := a.q.Nodes.At(m.Number)
	ctx, cancel := context.WithTimeout(a.ctx, n.Timeout(&a.set))
	defer cancel()
	v, err := n.Do(ctx, words...)
	return flow.Text(v, len(v)-1), err
}

// persistence asks a node what it keeps on its disk.
func (a asker) persistence(m nodeset.Member) change.Persistence {
	said, err := a.says(m, "INFO", "persistence")
	if err != nil {
		return a.unsaved(m, err)
	}
	info, server := report.InfoFields(said), a.q.Nodes.At(m.Number).Info()
	p := change.Persistence{
		Known: true, Run: server.Run(), Log: info["aof_enabled"] == "1", Always: server.FsyncAlways,
		Saving: info["rdb_bgsave_in_progress"] == "1", Saved: info["rdb_last_bgsave_status"] == "ok",
	}
	if p.Log || p.Saving {
		return p
	}
	points, err := a.says(m, "CONFIG", "GET", "save")
	if err != nil {
		return a.unsaved(m, err)
	}
	p.Snapshots = points != ""
	return p
}

func (a asker) Snapshot(m nodeset.Member, again bool) change.Persistence {
	if again {
		a.set.Logger.Warn("quorate: node failed to write a snapshot; the change of the set waits for it: look at "+
			"that server's log and disk", "node", m.Addr)
	}
	run := a.q.Nodes.At(m.Number).Info().Run() // before the command: one of a later run is begun again
	if _, err := a.says(m, "BGSAVE"); err != nil {
		return a.unsaved(m, err)
	}
	return change.Persistence{Known: true, Run: run, Saving: true}
}

// unsaved returns what is known of a member's disk after err. If the node
// refuses permanently, it is Refused, and the log says what an operator must
// look at.
func (a asker) unsaved(m nodeset.Member, err error) change.Persistence {
	e, refused := err.(resp.Error)
	if !refused || e.Code() == "ERR" && (strings.Contains(string(e), "in progress") ||
		strings.Contains(string(e), "child process")) || e.Code() == "LOADING" || e.Code() == "BUSY" {
		return change.Persistence{}
	}
	a.set.Logger.Warn("quorate: cannot tell whether a node has saved the change of the set to disk; if you "+
		"restart it, make sure that it does not load an older file",
		"node", m.Addr, "error", err)
	return change.Persistence{Known: true, Refused: true}
}
