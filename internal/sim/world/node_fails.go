package world

import (
	"maps"
	"strings"
	"time"
)

// The faults of a node: it crashes, stops, forgets, refuses, its clock jumps,
// and other programs use its keys.

// Crash takes the node down, and every connection with it.
func (n *Node) Crash() {
	n.World.Tape.Note("crash %d", n.Index+1)
	defer n.World.Tape.Within()()
	n.World.Log("node %d crashes", n.Index)
	n.World.Stats.Restarts++
	n.Down, n.Paused = true, false
	n.inbox = nil
	n.EachLink((*Link).Snap)
}

// Restart brings it up with what it has in its memory.
func (n *Node) Restart() {
	n.World.Tape.Note("restart %d", n.Index+1)
	defer n.World.Tape.Within()()
	n.World.Log("node %d is back", n.Index)
	n.Down = false
	n.EachLink((*Link).Connect)
}

// Forget loses the memory.
func (n *Node) Forget() {
	n.World.Tape.Note("forget %d", n.Index+1)
	defer n.World.Tape.Within()()
	n.World.Log("node %d has lost its data", n.Index)
	n.lives++
	n.Model.Forget()
	n.saved = nil
	n.beyondDoubt()
	n.Names, n.TurnEnds, n.TurnOf = map[string]bool{}, 0, nil
	n.World.Judge.Lost()
}

// Copy has the node be another one's replica for a moment, and then a master
// again: it has the other's data, and its connections last.
func (n *Node) Copy(o *Node) {
	n.World.Tape.Note("replica %d of %d", n.Index+1, o.Index+1)
	n.World.Log("node %d was a replica of node %d", n.Index, o.Index)
	n.Model = o.Model.Clone()
	n.replica, n.Unmarked, n.Clock.jumped = true, false, o.Clock.jumped
	n.World.Judge.Lost()
}

// Save writes the memory to the disk, as Redis does now and then.
func (n *Node) Save() {
	n.World.Tape.Note("save %d", n.Index+1)
	n.saved, n.savedWith = n.Model.Clone(), maps.Clone(n.Names)
}

// Refuses has it refuse every request, permanently or for now, or no more.
func (n *Node) Refuses(all, forNow bool) {
	if n.Refuse != (all && !forNow) || n.busy != (all && forNow) {
		n.World.Tape.Note("refuse %d%s", n.Index+1,
			map[bool]string{!all: " no more", all && forNow: " for now"}[true])
	}
	n.Refuse, n.busy = all && !forNow, all && forNow
}

// SetPlain is another Redlock client's: it sets the redlock key if that is
// free.
func (n *Node) SetPlain(value string, lease time.Duration) bool {
	n.World.Tape.Note("key %d %v as %s", n.Index+1, lease, strings.ReplaceAll(value, " ", "-"))
	return n.Data(0).Redlock.Set(n.Millis(), value, lease)
}

// DelPlain deletes the redlock key if it has that value, or any if that is
// empty.
func (n *Node) DelPlain(value string) {
	n.World.Tape.Note("unkey %d %s", n.Index+1, strings.ReplaceAll(value, " ", "-"))
	n.Data(0).Redlock.Delete(n.Millis(), value)
}

// Revert is a restart from the disk: the newest writes are gone, and the marker
// is not.
func (n *Node) Revert() {
	n.World.Tape.Note("revert %d", n.Index+1)
	defer n.World.Tape.Within()()
	if n.saved == nil {
		n.Forget()
		return
	}
	n.World.Log("node %d has lost what it did since its last save", n.Index)
	n.Model, n.Names = n.saved.Clone(), maps.Clone(n.savedWith)
	n.Unmarked = !n.World.Forgetful
	n.World.Judge.Lost()
}

// ComeBack has the memory of the last save come back in one run of the server.
// Its marker names that run.
func (n *Node) ComeBack() {
	n.World.Tape.Note("return %d", n.Index+1)
	n.World.Log("node %d has what it had at its last save", n.Index)
	n.Model, n.Names = n.saved.Clone(), maps.Clone(n.savedWith)
	n.back = true
	n.World.Judge.Lost()
}

// Evict has a node say that an operator ends a hold, and reports whether it
// does.
func (n *Node) Evict(a *Attempt) (says bool) {
	n.World.Tape.Note("evict %s %d", a.Part.Label(), n.Index+1)
	if n.Down || n.Paused {
		return false
	}
	n.World.Log("an operator ends %v at node %d", a, n.Index)
	_, outs := a.Part.Data(n).Evict(n.Millis(), a.Claim.State.Ticket())
	for _, o := range outs {
		if o.Push.ID == a.Claim.State.ID {
			says = true
			a.EvictedBy |= 1 << n.Index
		}
		n.Push(o)
	}
	return says
}

func (n *Node) Pause() {
	n.World.Tape.Note("stop %d", n.Index+1)
	defer n.World.Tape.Within()()
	n.World.Log("node %d stops", n.Index)
	n.Paused = true
}

// Resume: everything that has queued up is handled now.
func (n *Node) Resume() {
	n.World.Tape.Note("go %d", n.Index+1)
	defer n.World.Tape.Within()()
	if !n.Paused {
		return
	}
	n.World.Log("node %d goes on", n.Index)
	n.Paused = false
	inbox := n.inbox
	n.inbox = nil
	for _, e := range inbox {
		n.World.request(e)
	}
	n.EachLink((*Link).Connect)
}
