package script

// This file owns the keys of a name and the bytes of each command. The Append
// functions write to the caller's buffer, so that a renewal allocates nothing.
// Invariant: every key that a script touches is among its KEYS. ACL rules by
// key, and proxies that route by key, rest on that.
// Invariant: argument positions are those that the scripts read
// (scripts/open.lua).

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// Flags of a request, argument 6 of the scripts: one number for four booleans,
// because each word of a command costs the node more than the addition.
const (
	flagNotify = 1 << iota
	flagList
	flagSettle
)

// Keys are the keys of one name:
//
//	NAME                    the redlock key, as other Redlock clients write it
//	PREFIX:{NAME}           the fence, the capacity, and the one claim of a mutex that is alone
//	PREFIX:{NAME}:q, :c     the queue by ticket, and what the node keeps of each claim
//	PREFIX:{NAME}:r, :w     the record and its watchers
//	PREFIX:{NAME}:n         the side on which a semaphore's number of permits is decided
//	PREFIX:{}:STAMP         the marker of the node, shared by all names
//
// Keys are values. They are put together as they are sent: a process may hold a
// great many names.
type Keys struct{ prefix, name, side, home string }

// NewKeys returns the keys of name. With the prefix of a bucket all of them,
// and the marker, hash to one slot. Otherwise they do save the redlock key and
// the marker: the node is one server.
func NewKeys(prefix, name string) Keys { return NewKeysBeside(prefix, name, "") }

// At returns the keys for requests that count on the configuration of that
// stamp: its nodes have their markers at another key, so no other node takes
// the request.
func (k Keys) At(home Home) Keys {
	k.home = home.end()
	return k
}

// Number is the side of a name where the number of a semaphore's permits is
// recorded. No other name's keys can be the same, as none contains a brace.
const Number = ":n"

// NewKeysBeside returns the keys of one side of name: for a lock of its own,
// and a record, that concern the name. The empty side is the name itself.
func NewKeysBeside(prefix, name, side string) Keys {
	return Keys{prefix: prefix, name: name, side: side, home: sets}
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

func (k Keys) State() string { return k.ours("") }

func (k Keys) Queue() string { return k.ours(queue) }

func (k Keys) Claims() string { return k.ours(claims) }

func (k Keys) Marker() string { return k.prefix + k.home }

// Record is the key of what is kept beside the claims.
func (k Keys) Record() string { return k.ours(recorded) }

// Watchers is the key of the clients that observe the record.
func (k Keys) Watchers() string { return k.ours(watchers) }

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
	dst = resp.AppendJoined(dst, k.prefix, k.home)
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
	dst = resp.AppendJoined(dst, k.prefix, k.home)
	dst = k.appendOurs(dst, "")
	dst = k.appendOurs(dst, claims)
	if tag != "" {
		dst = resp.AppendJoined(dst, tag, absent)
	}
	return dst
}

const sets = ":{}:" // no name is empty, so no key of a name begins so

// ReadShort is the command that reads a marker or a turn. Other programs may
// write there, so no more is read than a text of ours has: a value of 100 MB
// stops a server for as long as it takes to lose holds. The scripts keep to the
// same bounds.
func ReadShort(key string) []string { return []string{"GETRANGE", key, "0", "1023"} }

// ReadLong is ReadShort for a record, or for the set.
func ReadLong(key string) []string { return []string{"GETRANGE", key, "0", "1048575"} }

// SpreadKeys returns the key of a node's marker and two that do not exist. A
// server in cluster mode refuses to look for them together: the slots of two
// differ by their braces, whatever the prefix is.
func SpreadKeys(marker, prefix string) []string {
	return []string{marker, prefix + ":{a}" + absent, prefix + ":{b}" + absent}
}

// Home says how the key of the marker ends for one configuration. It is kept as
// a whole: a request must not allocate. While no set is known it is empty, and
// the key none that exists.
type Home string

// HomeOf returns the Home of a configuration, of none if the stamp is empty.
func HomeOf(s nodeset.Stamp) Home {
	if s == "" {
		return ""
	}
	return Home(sets + s)
}

func (h Home) Stamp() nodeset.Stamp { return nodeset.Stamp(strings.TrimPrefix(string(h), sets)) }

func (h Home) Marker(prefix string) string { return prefix + h.end() }

func (h Home) end() string {
	if h == "" {
		return sets
	}
	return string(h)
}

// SetKey is the key of a node's record of the set that it belongs to.
func SetKey(prefix string) string { return prefix + sets + "set" }

// TurnKey is the key of the client whose turn it is to repair the node.
func TurnKey(prefix string) string { return prefix + sets + "turn" }

// AppendCommand is on the path of each Lock and each renewal. A beat sends no
// weight and no owner: the node has them since the join. It appends the EVALSHA
// that puts request r of the claim with terms t to a node. Pushes for the claim
// will go to the channel owner.
func AppendCommand(dst []byte, k Keys, t *protocol.Terms, owner string, guard, retention time.Duration, r protocol.Request) []byte {
	if r.Op >= protocol.OpRead {
		return appendRecord(dst, k, t, owner, guard, r)
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
	dst = resp.AppendInt(dst, guard.Milliseconds())
	dst = resp.AppendInt(dst, (t.TTL + retention).Milliseconds())
	var word [20]byte
	dst = resp.AppendBytes(dst, k.capacity(word[:0], t.Capacity))
	if args >= 6 {
		dst = resp.AppendInt(dst, int64(flags))
	}
	if args == 7 {
		dst = resp.AppendInt(dst, int64(r.Ticket))
	}
	if args == 9 {
		dst = resp.AppendInt(dst, int64(r.Ticket))
		dst = resp.AppendInt(dst, int64(t.Weight))
		dst = resp.AppendString(dst, owner)
	}
	return dst
}

// AppendMark appends the EVALSHA by which a client that has just connected
// tells the node, by the key of its marker, which run of the server it sees.
// jumped is the incarnation, in decimal, that is not to be trusted though the
// server has not been restarted, or empty. The node makes a new incarnation
// from random, if it needs one. runID must not be empty.
func AppendMark(dst []byte, marker string, random protocol.ID, runID, jumped string) []byte {
	dst = resp.AppendArray(dst, 3+1+more(tagOf(marker))+3)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, built().mark.SHA)
	dst = appendKeys(dst, marker)
	dst = resp.AppendString(dst, random.String())
	dst = resp.AppendString(dst, runID)
	return resp.AppendString(dst, jumped)
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
