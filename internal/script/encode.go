package script

import (
	"encoding/hex"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// Flags of a request, argument 6 of the scripts.
const (
	flagNotify = 1 << iota
	flagList
	flagSettle
)

// Keys are the keys of one name. A process may hold a great many names, so no
// more is kept of them than what differs: a key is put together as it is sent.
type Keys struct{ prefix, plain, state string }

// NewKeys returns the keys of name. They hash to one slot, save the marker: a
// node is one server, not a Redis Cluster.
func NewKeys(prefix, name string) Keys {
	return Keys{prefix: prefix, plain: name, state: prefix + ":{" + name + "}"}
}

// Number is the side of a name where the number of a semaphore's permits is
// recorded. No other name's keys can be the same, as none contains a brace.
const Number = ":n"

// NewKeysBeside returns the keys of one side of name: for a lock of its own,
// and a record, that concern the name.
func NewKeysBeside(prefix, name, side string) Keys {
	state := prefix + ":{" + name + "}" + side
	return Keys{prefix: prefix, plain: state + ":p", state: state}
}

// What is added to the state's key for each of the others.
const (
	toQueue    = ":q"
	toClaims   = ":c"
	toRecord   = ":r"
	toWatchers = ":w"
	toMarker   = ":marker" // to the prefix
)

// Plain is the classic key; State, Queue and Claims are ours, Marker is the node's.
func (k Keys) Plain() string { return k.plain }

// State see Plain.
func (k Keys) State() string { return k.state }

// Queue see Plain.
func (k Keys) Queue() string { return k.state + toQueue }

// Claims see Plain.
func (k Keys) Claims() string { return k.state + toClaims }

// Marker see Plain.
func (k Keys) Marker() string { return MarkerKey(k.prefix) }

// Record is the key of what is kept beside the claims.
func (k Keys) Record() string { return k.state + toRecord }

// Watchers is the key of who wants to hear of that.
func (k Keys) Watchers() string { return k.state + toWatchers }

// appendClaims appends the number and the keys of what concerns claims, with
// the number of a semaphore's permits if they are counted.
func (k Keys) appendClaims(dst []byte, n int) []byte {
	dst = resp.AppendInt(dst, int64(n))
	dst = resp.AppendString(dst, k.plain)
	dst = resp.AppendString(dst, k.state)
	dst = resp.AppendJoined(dst, k.state, toQueue)
	dst = resp.AppendJoined(dst, k.state, toClaims)
	dst = resp.AppendJoined(dst, k.prefix, toMarker)
	if n == 6 {
		dst = resp.AppendJoined(dst, k.state, Number+toRecord)
	}
	return dst
}

// appendRecord appends the number and the keys of what concerns the record.
func (k Keys) appendRecord(dst []byte) []byte {
	dst = resp.AppendString(dst, "5")
	dst = resp.AppendJoined(dst, k.state, toRecord)
	dst = resp.AppendJoined(dst, k.state, toWatchers)
	dst = resp.AppendJoined(dst, k.prefix, toMarker)
	dst = resp.AppendString(dst, k.state)
	return resp.AppendJoined(dst, k.state, toClaims)
}

// MarkerKey is the key of a node's marker.
func MarkerKey(prefix string) string { return prefix + toMarker }

// AppendCommand appends the EVALSHA that puts request r of the claim with terms
// t to a node. Pushes for the claim will go to the channel owner.
func AppendCommand(dst []byte, k Keys, t *protocol.Terms, owner string, guard, retention time.Duration, r protocol.Request) []byte {
	if r.Op >= protocol.OpRead {
		return appendRecord(dst, k, t, owner, guard, r)
	}
	sha, args := leave.SHA, 5
	flags := 0
	switch r.Op {
	case protocol.OpJoin, protocol.OpSettle:
		sha, args = enter.SHA, 9
		if t.Notify {
			flags |= flagNotify
		}
		if r.Op == protocol.OpSettle {
			flags |= flagSettle
		}
	case protocol.OpBeat:
		sha, args = beat.SHA, 6
	}
	if r.List {
		flags |= flagList
		if r.Op == protocol.OpBeat {
			args = 7
		}
	}

	keys := 5
	if t.Counting {
		keys = 6
	}
	dst = resp.AppendArray(dst, 3+keys+args)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, sha)
	dst = k.appendClaims(dst, keys)
	var id [2 * len(t.ID)]byte
	hex.Encode(id[:], t.ID[:])
	dst = resp.AppendBytes(dst, id[:])
	dst = resp.AppendInt(dst, t.TTL.Milliseconds())
	dst = resp.AppendInt(dst, guard.Milliseconds())
	dst = resp.AppendInt(dst, (t.TTL + retention).Milliseconds())
	dst = resp.AppendUint(dst, t.Capacity)
	if args >= 6 {
		dst = resp.AppendInt(dst, int64(flags))
	}
	if args == 7 {
		dst = resp.AppendUint(dst, uint64(r.Ticket))
	}
	if args == 9 {
		dst = resp.AppendUint(dst, uint64(r.Ticket))
		dst = resp.AppendUint(dst, t.Weight)
		dst = resp.AppendString(dst, owner)
	}
	return dst
}

// What a client says with AppendMark of a node's memory after a restart.
const (
	Kept = "0"
	Lost = "1" // the newest writes, if not all
)

// AppendMark appends the EVALSHA by which a client that has just connected
// tells the node which run of the server it sees, how long that has lasted, and
// whether it may have begun with an old memory: Kept, Lost, or the incarnation,
// in decimal, that is not to be trusted though the server has not been restarted.
// runID must not be empty: "-" says unknown.
func AppendMark(dst []byte, prefix string, random protocol.ID, runID, lost string, uptime time.Duration) []byte {
	dst = appendMarker(dst, mark.SHA, 4, prefix, random, runID)
	dst = resp.AppendString(dst, lost)
	return resp.AppendInt(dst, uptime.Milliseconds())
}

// AppendBootstrap appends the EVALSHA that declares a node ready at once.
func AppendBootstrap(dst []byte, prefix string, random protocol.ID, runID string) []byte {
	return appendMarker(dst, bootstrap.SHA, 2, prefix, random, runID)
}

func appendMarker(dst []byte, sha string, args int, prefix string, random protocol.ID, runID string) []byte {
	dst = resp.AppendArray(dst, 3+1+args)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, sha)
	dst = resp.AppendInt(dst, 1)
	dst = resp.AppendString(dst, MarkerKey(prefix))
	dst = resp.AppendString(dst, random.String())
	return resp.AppendString(dst, runID)
}

// AppendLoad appends the SCRIPT LOAD of s.
func AppendLoad(dst []byte, s Script) []byte {
	return resp.AppendCommand(dst, "SCRIPT", "LOAD", s.Source)
}
