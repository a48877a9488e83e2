// Package members shows which nodes a set has, and changes the set while locks
// are held and waited for.
//
//	err := members.Replace(ctx, q, "lock-c:6379", "redis://lock-d:6379")
//
// A set has members, each with a number, an identity and an address, and the
// settings that all clients share. The nodes store all of this.
// [quorate.Quorum.Bootstrap] makes brand-new nodes record their set.
// docs/operate/membership.md is for operators.
//
// # What all changes have in common
//
// A change returns when a majority of the new set serves it and the connected
// clients have followed. Only then may you stop a server that has left, or
// begin the next change, because a client follows what a majority of the
// members that it knows report. A change that removes an address waits half a
// guard time for the clients to follow. Holders keep their holds, waiters keep
// their places, and tokens keep rising. Give each client the new list
// afterwards: a client that starts finds the set through a majority of its
// list. A client that is cut off from the nodes while a change ends may also
// need the new list.
//
// Only one change is in progress at a time. A call that finds another change in
// progress finishes that change first, even if a process abandoned it half-way.
// If ctx ends, or a new node has not answered for a guard time, the change is
// rolled back: the set is as it was before, and the error says so. If the
// change can no longer be rolled back, or the process dies, the set remains
// half-way. That is safe for as long as it lasts, and locks work. The next call
// continues the change, unless it is [Undo], which rolls the change back.
//
// Each call fails with [quorate.ErrInvalid], and changes nothing, if the change
// is invalid or a new server cannot be a member; with [quorate.ErrNoQuorum] if
// too few nodes answer; with ctx's error; and with [quorate.ErrClosed]. A
// Quorum of Redis Clusters cannot be changed: such a call fails with
// ErrInvalid. All functions in this package are safe for concurrent use, even
// from several processes.
package members

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/operator"
)

// A Member is one node of a set.
type Member struct {
	Number   int      // identifies it in requests and votes; a member that enters gets a new number
	Identity string   // stays with the node's data
	Addr     string   // the address that clients dial
	Role     Role     // anything but Stays only while the set is being changed
	Also     []string // additional addresses of the server; see [AddAddr]
}

// Role is what a change does with a member.
type Role string

// The roles.
const (
	// Stays ("stays"): the node is a member before and after the change.
	Stays Role = "stays"
	// Enters ("enters"): the node is being added.
	Enters Role = "enters"
	// Leaves ("leaves"): the node is being removed.
	Leaves Role = "leaves"
)

// Settings holds the configuration that all clients of a set share. [Set] leaves a
// setting unchanged if its field is zero, but if the retention is shorter than
// the new guard time, Set raises it to the guard time. The same limits apply as
// in [quorate.New].
type Settings struct {
	Guard     time.Duration // how long a node that lost its data does not vote; see [quorate.WithGuard]
	Retention time.Duration // how long a name's last ticket is kept; see [quorate.WithRetention]
	Skew      time.Duration // the largest tolerated difference between the nodes' clocks; see [quorate.WithSkew]
}

// A List is the set as this process currently uses it.
type List struct {
	Epoch    uint64        // counts the configurations of the set, from 1
	Stage    quorate.Stage // other than [quorate.StageStable] while the set is being changed
	Members  []Member
	Settings Settings
}

// Get returns the set that q uses. It waits until the set is known, even while
// the nodes do not answer or are brand-new. If ctx ends first, it fails with
// [quorate.ErrNoQuorum] and ctx's error. It fails with ErrNoQuorum alone if so
// many nodes refuse that waiting cannot help, with [quorate.ErrInvalid] if q's
// list matches no set, and with [quorate.ErrClosed].
func Get(ctx context.Context, q *quorate.Quorum) (List, error) {
	c, err := core.CoreOf(q).Onlooker().Configuration(ctx)
	if err != nil {
		return List{}, core.WrapError("members", "", err)
	}
	l := List{Epoch: c.Stamp.Epoch(), Stage: quorate.Stage(c.Stage.String()), Settings: Settings{c.Guard(), c.Retention(), c.Skew()}}
	for _, m := range c.Members {
		l.Members = append(l.Members, Member{m.Number, m.Identity, m.Addr, Role(m.Role.String()), slices.Clone(m.Also)})
	}
	return l, nil
}

// Add adds nodes to the set. Each url is a URL as [quorate.Connect] takes it,
// of a server or a Sentinel set that is empty or has left this set. Adding
// takes two guard times: during the first, the new nodes copy the data of the
// others; during the second, a lock needs a majority of both sets.
func Add(ctx context.Context, q *quorate.Quorum, urls ...string) error {
	return change(ctx, q, "add members", operator.Exchange{Add: urls})
}

// Remove removes nodes from the set. Each is given by its address, or by a URL
// with that address. You can also remove a node that is down permanently.
// Removing takes about one and a half guard times. Do not stop the servers
// until Remove has returned nil.
//
// While several processes contend for a name, its holder may have a majority
// only with the help of nodes that are leaving. Its hold is then lost within
// its TTL, and its context ends.
func Remove(ctx context.Context, q *quorate.Quorum, addrs ...string) error {
	return change(ctx, q, "remove members", operator.Exchange{Remove: addrs})
}

// Replace replaces one node of the set with another. old is as for [Remove],
// and may be down permanently. url is as for [Add]. Replacing takes about two
// and a half guard times.
//
// A server that was emptied or got a new disk, and keeps its address, needs no
// call: it rejoins on its own.
func Replace(ctx context.Context, q *quorate.Quorum, old, url string) error {
	return change(ctx, q, "replace member", operator.Exchange{Add: []string{url}, Remove: []string{old}})
}

// Move changes the address of a member. Its server keeps its data and answers
// at the new address. Moving takes about half a guard time. If the member had
// several addresses, only the new address remains; to may be one of the
// existing addresses. Move fails with [quorate.ErrInvalid] if the server at the
// new address is a copy, and the member still answers.
func Move(ctx context.Context, q *quorate.Quorum, from, to string) error {
	return change(ctx, q, "move member", operator.Exchange{Move: &operator.Move{From: from, To: to}})
}

// AddAddr gives a member one more address. Both addresses must always lead to
// the same server: for example a plain port and a TLS port, a host name and an
// IP, or addresses on two networks. If the client's own list contains an
// address of the member, the client dials that address, as that entry says;
// otherwise it dials the first address. This lets you switch clients over one
// at a time. addr is any address of the member, and another is a URL as
// [quorate.Connect] takes it.
//
// AddAddr takes only a moment and does not wait for clients. It fails with
// [quorate.ErrInvalid] if the member does not answer, if another server answers
// at the new address, or if the member already has four addresses. [Move]
// removes all addresses but one.
func AddAddr(ctx context.Context, q *quorate.Quorum, addr, another string) error {
	return change(ctx, q, "add address", operator.Exchange{Move: &operator.Move{From: addr, To: another, Keep: true}})
}

// Set changes the settings of the set. It takes about as long as the old or the
// new guard time, whichever is longer. If the new guard time no longer covers
// the TTL of a client, that client's holds end: the client is refused with
// [quorate.ErrInvalid] and an error that shows both numbers.
func Set(ctx context.Context, q *quorate.Quorum, s Settings) error {
	return change(ctx, q, "set members", operator.Exchange{Shared: &nodeset.Shared{Guard: s.Guard, Retention: s.Retention, Skew: s.Skew}})
}

// Undo rolls back a change that a process left half-way or that another process
// is waiting for. When it returns nil, the set is as it was before the change,
// even if there was nothing to undo. It does not wait for nodes that were to be
// added. It takes only moments. You may repeat a call that was interrupted.
func Undo(ctx context.Context, q *quorate.Quorum) error {
	return change(ctx, q, "undo", operator.Exchange{Undo: true})
}

func change(ctx context.Context, q *quorate.Quorum, op string, x operator.Exchange) error {
	return core.WrapError(op, "", operator.Run(ctx, core.CoreOf(q), x))
}
