// Package members lists the nodes of a set and changes the set while locks are
// held and waited for.
//
//	err := members.Replace(ctx, q, "lock-c:6379", "redis://lock-d:6379")
//
// A set consists of members, each with a number, an identity and an address,
// and of settings that all clients share. The nodes store all of this.
// [quorate.Quorum.Bootstrap] has brand-new nodes record their set. For an
// operator's view, see docs/operate/membership.md.
//
// # What all changes have in common
//
// A change returns when a majority of the new set has adopted it and the
// connected clients have followed. Do not stop a server that has left, or start
// the next change, before that: a client follows what a majority of the members
// it knows report. A change that removes an address waits half a guard time for
// the clients to follow. Holders keep their holds, waiters keep their places,
// and tokens keep increasing. Update each client's list afterwards, before you
// stop the removed servers, because when a client starts, it finds the set
// through a majority of its list. A client that is cut off from the nodes while
// a change completes may also need the new list.
//
// Only one change can be in progress at a time. If a call finds another change
// in progress, it finishes that change first, even if a process abandoned it
// halfway. If ctx is done, or a new node has not answered for a guard time, the
// change is rolled back: the set is as it was before, and the error says so. If
// it is too late to roll back, or the process dies, the set stays halfway
// through the change. That is safe for any length of time, and locks keep
// working. The next call continues the change, unless it is [Undo], which rolls
// it back.
//
// Each call returns [quorate.ErrInvalid], without changing anything, if the
// change is invalid or a new server cannot be a member; [quorate.ErrNoQuorum]
// if too few nodes answer; ctx's error if ctx is done; and [quorate.ErrClosed]
// after Close. A Quorum that contains a Redis Cluster cannot be changed: calls
// return ErrInvalid. All functions in this package are safe for concurrent use,
// even from several processes.
package members

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/operator"
)

// A Member is one node of a set.
type Member struct {
	Number   int      // identifies it in requests and votes; a node that joins gets a new number
	Identity string   // stays with the node's data
	Addr     string   // the address that clients dial
	Role     Role     // Stays unless the set is being changed
	Also     []string // additional addresses of the server; see [AddAddr]
}

// Role is what a change does to a member.
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

// Settings are the settings that all clients of a set share. [Set] leaves a
// setting unchanged if its field is zero, except that it raises the retention
// to the new guard time if it is shorter. The same limits apply as in
// [quorate.New].
type Settings struct {
	// How long a node that lost its data waits before it votes; see
	// [quorate.WithGuard].
	Guard     time.Duration
	Retention time.Duration // how long a name's last ticket is kept; see [quorate.WithRetention]
	Skew      time.Duration // how far the nodes' clocks may differ; see [quorate.WithSkew]
}

// A List is the set as this process currently uses it.
type List struct {
	Epoch    uint64        // number of the set's configuration, counting from 1
	Stage    quorate.Stage // [quorate.StageStable] unless the set is being changed
	Members  []Member
	Settings Settings
}

// Get returns the set that q uses. It waits until the set is known, even if the
// nodes do not answer or are brand-new. If ctx is done first, it returns
// [quorate.ErrNoQuorum] joined with ctx's error. It returns ErrNoQuorum alone
// if so many nodes refuse that waiting is pointless, [quorate.ErrInvalid] if
// q's list matches no set, and [quorate.ErrClosed] after Close.
func Get(ctx context.Context, q *quorate.Quorum) (List, error) {
	c, err := core.CoreOf(q).Onlooker().Configuration(ctx)
	if err != nil {
		return List{}, core.WrapError("members", "", err)
	}
	l := List{Epoch: c.Stamp.Epoch(), Stage: quorate.Stage(c.Stage.String()),
		Settings: Settings{c.Guard(), c.Retention(), c.Skew()}}
	for _, m := range c.Members {
		l.Members = append(l.Members, Member{m.Number, m.Identity, m.Addr,
			Role(m.Role.String()), slices.Clone(m.Also)})
	}
	return l, nil
}

// Add adds nodes to the set. Each url is in the format of [quorate.Connect] and
// names a server or a Sentinel set that is empty or has left this set, with the
// database number of q's nodes. Adding takes two guard times: during the first,
// the new nodes copy the data of the others; during the second, a lock needs a
// majority of both the old and the new set. If the set is a single node with a
// skew of 0, [Set] a skew first.
func Add(ctx context.Context, q *quorate.Quorum, urls ...string) error {
	return change(ctx, q, "add members", operator.Exchange{Add: urls})
}

// Remove removes nodes from the set. Each is identified by its address, or by a
// URL with that address. You can also remove a node that is permanently down.
// Removing takes about one and a half guard times. Do not stop the servers
// until Remove has returned nil.
//
// If several processes contend for a name, the holder may have a majority only
// with the help of the nodes that are leaving. Its hold is then lost within its
// TTL, and its context ends.
func Remove(ctx context.Context, q *quorate.Quorum, addrs ...string) error {
	return change(ctx, q, "remove members", operator.Exchange{Remove: addrs})
}

// Replace replaces one node of the set with another. old is an address as in
// [Remove], and that node may be permanently down. url is as in [Add].
// Replacing takes about two and a half guard times.
//
// You do not need this for a server that keeps its address but was emptied or
// got a new disk: it rejoins on its own.
func Replace(ctx context.Context, q *quorate.Quorum, old, url string) error {
	return change(ctx, q, "replace member", operator.Exchange{Add: []string{url}, Remove: []string{old}})
}

// Move changes the address of a member whose server has kept its data and now
// answers at the new address. Moving takes about half a guard time. If the
// member had several addresses, only the new one remains; to may be one of the
// existing addresses. Move returns [quorate.ErrInvalid] if the server at the
// new address is a copy and the member itself still answers.
//
// If the only member or a majority has moved, q's list must have new addresses,
// so that q finds the set. more are the old and the new address of each further
// member that has moved. A majority of the members must answer: those that have
// moved at their new addresses, the others at the recorded ones.
func Move(ctx context.Context, q *quorate.Quorum, from, to string, more ...string) error {
	if len(more)%2 != 0 {
		return core.WrapError("move member", "", &fault.Failure{Err: fmt.Errorf("%w: %s has no new address",
			fault.ErrInvalid, more[len(more)-1])})
	}
	var x operator.Exchange
	for pair := range slices.Chunk(append([]string{from, to}, more...), 2) {
		x.Move = append(x.Move, operator.Move{From: pair[0], To: pair[1]})
	}
	return change(ctx, q, "move member", x)
}

// AddAddr gives a member an additional address. All addresses must always lead
// to the same server: for example a plain port and a TLS port, a host name and
// an IP address, or addresses on two networks. If a client's own list contains
// an address of the member, the client dials that address with that entry's
// settings; otherwise it dials the first address. This lets you switch clients
// over one at a time. addr is any address of the member, and another is a URL
// in the format of [quorate.Connect].
//
// AddAddr takes only a moment and does not wait for clients. It returns
// [quorate.ErrInvalid] if the member does not answer, if another server answers
// at the new address, or if the member already has four addresses. To remove
// all addresses but one, use [Move].
func AddAddr(ctx context.Context, q *quorate.Quorum, addr, another string) error {
	return change(ctx, q, "add address",
		operator.Exchange{Move: []operator.Move{{From: addr, To: another, Keep: true}}})
}

// Set changes the settings of the set. It takes about as long as the old or the
// new guard time, whichever is longer. If the new guard time is too short for a
// client's TTL, that client's holds end and it is refused with
// [quorate.ErrInvalid]; the error shows both numbers. Nodes don't vote until
// they have been up, with their data, for a new guard time that is longer. If
// that silences a majority, all holds end.
func Set(ctx context.Context, q *quorate.Quorum, s Settings) error {
	return change(ctx, q, "set members",
		operator.Exchange{Shared: &nodeset.Shared{Guard: s.Guard, Retention: s.Retention, Skew: s.Skew}})
}

// Undo rolls back a change that a process left halfway or that another process
// is waiting for. When it returns nil, the set is as it was before the change,
// even if there was nothing to undo. It does not wait for the nodes that were
// being added, and takes only moments. If a call is interrupted, you may repeat
// it.
func Undo(ctx context.Context, q *quorate.Quorum) error {
	return change(ctx, q, "undo", operator.Exchange{Undo: true})
}

func change(ctx context.Context, q *quorate.Quorum, op string, x operator.Exchange) error {
	return core.WrapError(op, "", operator.Run(ctx, core.CoreOf(q), x))
}
