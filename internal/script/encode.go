package script

// This file owns the keys of a name and the bytes of each command. The Append
// functions write to the caller's buffer, so that a renewal allocates nothing.
//
// Invariant: every key that a script touches is among its KEYS. ACL rules by
// key, and proxies that route by key, rest on that.
//
// Invariant: argument positions are those that the scripts read
// (scripts/open.lua). A word that is added goes to the end: clients and scripts
// always come from one build, since the SHA of a script names its source, but
// the conformance tests compare word by word.

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// Flags of a request, argument 6 of the scripts: one number for four booleans,
// because each word of a command costs the node more than the addition.
const (
	flagNotify = 1 << iota
	flagList
	flagSettle
	flagBack
)

// Keys are the keys of one name:
//
//	NAME                    the redlock key, as other Redlock clients write it
//	PREFIX:{NAME}           the fence, the capacity, and the one claim of a mutex that is alone
//	PREFIX:{NAME}:q, :c     the queue by ticket, and what the node keeps of each claim
//	PREFIX:{NAME}:r, :w     the record and its watchers
//	PREFIX:{NAME}:n         the side on which a semaphore's number of permits is decided
//	PREFIX:marker           of the node, shared by all names
//
// Keys are values. They are put together as they are sent: a process may hold a
// great many names.
type Keys struct{ prefix, name, side, home string }

// NewKeys returns the keys of name. With the prefix of a bucket all of them,
// and the marker, hash to one slot. Otherwise they do save the redlock key and
// the marker: the node is one server.
func NewKeys(prefix, name string) Keys { return Keys{prefix: prefix, name: name} }

// At returns the keys for requests that count on the configuration of that
// stamp: its nodes have their markers at another key, so no other node takes
// the request.
func (k Keys) At(home Home) Keys {
	k.home = string(home)
	return k
}

// Number is the side of a name where the number of a semaphore's permits is
// recorded. No other name's keys can be the same, as none contains a brace.
const Number = ":n"

// NewKeysBeside returns the keys of one side of name: for a lock of its own,
// and a record, that concern the name. The empty side is the name itself.
func NewKeysBeside(prefix, name, side string) Keys {
	return Keys{prefix: prefix, name: name, side: side}
}

// How those keys end that begin as the state's does.
const (
	plainBeside = ":p"
	queue       = ":q"
	claims      = ":c"
	recorded    = ":r"
	watchers    = ":w"
)

// ours is the state's key, and with an ending one of the others. The braces are
// the hash tag of Redis Cluster: the keys of one name and its sides share a
// slot.
func (k Keys) ours(end string) string { return k.prefix + ":{" + k.name + "}" + k.side + end }

func (k Keys) appendOurs(dst []byte, end string) []byte {
	return resp.AppendJoined(dst, k.prefix, ":{", k.name, "}", k.side, end)
}

// Plain is the redlock key, of a bucket's name the key that never exists;
// State, Queue and Claims are ours, Marker is the node's.
func (k Keys) Plain() string {
	if tag := tagOf(k.prefix); tag != "" {
		return tag + absent
	}
	if k.side == "" {
		return k.name
	}
	return k.ours(plainBeside)
}

// State see Plain.
func (k Keys) State() string { return k.ours("") }

// Queue see Plain.
func (k Keys) Queue() string { return k.ours(queue) }

// Claims see Plain.
func (k Keys) Claims() string { return k.ours(claims) }

// Marker see Plain.
func (k Keys) Marker() string { return Home(k.home).Marker(k.prefix) }

// Record is the key of what is kept beside the claims.
func (k Keys) Record() string { return k.ours(recorded) }

// Watchers is the key of the clients that observe the record.
func (k Keys) Watchers() string { return k.ours(watchers) }

// appendPlain appends Plain.
func (k Keys) appendPlain(dst []byte) []byte {
	if tag := tagOf(k.prefix); tag != "" {
		return resp.AppendJoined(dst, tag, absent)
	}
	if k.side == "" {
		return resp.AppendString(dst, k.name)
	}
	return k.appendOurs(dst, plainBeside)
}

// appendClaims appends the number and the keys of what concerns claims: five,
// or six with the number of a semaphore's permits.
func (k Keys) appendClaims(dst []byte, n int) []byte {
	dst = resp.AppendInt(dst, int64(n))
	dst = k.appendPlain(dst)
	dst = k.appendOurs(dst, "")
	dst = k.appendOurs(dst, queue)
	dst = k.appendOurs(dst, claims)
	dst = resp.AppendJoined(dst, k.prefix, k.markerEnd())
	if n == 6 {
		dst = k.appendOurs(dst, Number+recorded)
	}
	return dst
}

// appendRecord appends the number and the keys of what concerns the record.
func (k Keys) appendRecord(dst []byte) []byte {
	tag := tagOf(k.prefix)
	dst = resp.AppendInt(dst, int64(5+more(tag)))
	dst = k.appendOurs(dst, recorded)
	dst = k.appendOurs(dst, watchers)
	dst = resp.AppendJoined(dst, k.prefix, k.markerEnd())
	dst = k.appendOurs(dst, "")
	dst = k.appendOurs(dst, claims)
	if tag != "" {
		dst = resp.AppendJoined(dst, tag, absent)
	}
	return dst
}

const (
	marker = ":marker"
	sets   = ":{}:" // no name is empty, so no key of a name begins so
)

// MarkerKey is the key of the marker of a node without a recorded set.
func MarkerKey(prefix string) string { return prefix + marker }

// SpreadKeys returns the key of a node's marker and two that do not exist. A
// server in cluster mode refuses to read them together: the slots of two differ
// by their braces, whatever the prefix is.
func SpreadKeys(marker, prefix string) []string {
	return []string{marker, prefix + ":{a}:heal", prefix + ":{b}:heal"}
}

// Home says how the key of the marker ends for one configuration. The empty
// Home is that of nodes without a recorded set. It is kept as a whole: a
// request must not allocate.
type Home string

// HomeOf returns the Home of a configuration, of none if the stamp is empty.
func HomeOf(s protocol.Stamp) Home {
	if s == "" {
		return ""
	}
	return Home(sets + s)
}

// Stamp returns the stamp of the configuration.
func (h Home) Stamp() protocol.Stamp { return protocol.Stamp(strings.TrimPrefix(string(h), sets)) }

// Marker returns the key of the marker.
func (h Home) Marker(prefix string) string {
	if h == "" {
		return MarkerKey(prefix)
	}
	return prefix + string(h)
}

func (k Keys) markerEnd() string {
	if k.home == "" {
		return marker
	}
	return k.home
}

// SetKey is the key of a node's record of the set that it belongs to.
func SetKey(prefix string) string { return prefix + sets + "set" }

// AppendCommand is on the path of each Lock and each renewal. A beat sends no
// weight and no owner: the node has them since the join. It appends the EVALSHA
// that puts request r of the claim with terms t to a node. Pushes for the claim
// will go to the channel owner.
func AppendCommand(dst []byte, k Keys, t *protocol.Terms, owner string, guard, retention time.Duration, r protocol.Request) []byte {
	if r.Op >= protocol.OpRead {
		return appendRecord(dst, k, t, owner, guard, retention, r)
	}
	sha, args := built().leave.SHA, 5
	flags := 0
	switch r.Op {
	case protocol.OpJoin, protocol.OpSettle:
		sha, args = built().enter.SHA, 9
		if t.Notify {
			flags |= flagNotify
		}
		if r.Op == protocol.OpSettle {
			flags |= flagSettle
		}
		if r.Back {
			flags |= flagBack
		}
	case protocol.OpBeat:
		sha, args = built().beat.SHA, 6
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
	dst = appendPromise(dst, guard, retention)
	dst = resp.AppendInt(dst, (t.TTL + retention).Milliseconds())
	var word [20]byte
	dst = resp.AppendBytes(dst, k.capacity(word[:0], t.Capacity))
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

// appendPromise is in every command, because no node may vote on what it does
// not know: the longest settings that clients have shown decide (see
// model.Node.Show). It appends a client's guard time and retention as one word:
// a node compares it with that of its marker.
func appendPromise(dst []byte, guard, retention time.Duration) []byte {
	var word [40]byte
	b := strconv.AppendInt(word[:0], guard.Milliseconds(), 10)
	return resp.AppendBytes(dst, strconv.AppendInt(append(b, ' '), retention.Milliseconds(), 10))
}

// What a client says with AppendMark of a node's data after a restart.
const (
	Kept = "0"
	Lost = "1" // the newest writes, if not all
)

// AppendMark appends the EVALSHA by which a client that has just connected
// tells the node, by the key of its marker, which run of the server it sees,
// how long that has lasted, and whether it may have begun with an old memory:
// Kept, Lost, or the incarnation, in decimal, that is not to be trusted though
// the server has not been restarted. runID must not be empty: "-" says unknown.
func AppendMark(dst []byte, marker string, random protocol.ID, runID, lost string, uptime, guard, retention time.Duration) []byte {
	dst = appendMarker(dst, built().mark.SHA, 5, marker, random, runID)
	dst = resp.AppendString(dst, lost)
	dst = resp.AppendInt(dst, uptime.Milliseconds())
	return appendPromise(dst, guard, retention)
}

// Of which incarnations AppendBootstrap ends the guard time.
const (
	EndAny  = "0"
	EndNone = "-"
)

// AppendBootstrap appends the EVALSHA that declares a node ready at once. A
// guard time that runs is ended if the node is of that incarnation, in decimal,
// or with EndAny.
func AppendBootstrap(dst []byte, marker string, random protocol.ID, runID, end string, guard, retention time.Duration) []byte {
	dst = appendPromise(appendMarker(dst, built().bootstrap.SHA, 4, marker, random, runID), guard, retention)
	return resp.AppendString(dst, end)
}

// appendMarker appends the part that mark and bootstrap share. The node makes a
// new incarnation from random, if it needs one.
func appendMarker(dst []byte, sha string, args int, marker string, random protocol.ID, runID string) []byte {
	dst = resp.AppendArray(dst, 3+1+more(tagOf(marker))+args)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, sha)
	dst = appendKeys(dst, marker)
	dst = resp.AppendString(dst, random.String())
	return resp.AppendString(dst, runID)
}

// AppendLoad appends the SCRIPT LOAD of s. It is sent where a node answers
// NOSCRIPT: after a restart, or a SCRIPT FLUSH.
func AppendLoad(dst []byte, s Script) []byte {
	return resp.AppendCommand(dst, "SCRIPT", "LOAD", s.Source)
}

// Pattern is a pattern of SCAN for the keys of names that match a pattern. Of a
// bucket's keys it is for those of all buckets.
func Pattern(k Keys, names string) string {
	prefix := globQuote.Replace(k.prefix)
	if i := strings.LastIndexByte(prefix, ':'); tagOf(k.prefix) != "" {
		prefix = prefix[:i] + ":*}"
	}
	return prefix + ":{" + names + "}*"
}

// A prefix may have any byte, so what is special to SCAN's patterns is quoted.
var globQuote = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
