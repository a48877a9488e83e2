package script

// This file owns the keys of a name, and those of a bucket: the ones of some
// names, and a marker of their own, that lie in one slot of Redis Cluster.
// Invariant: every key that a script touches is among its KEYS. ACL rules by
// key, and proxies that route by key, rest on that.
// Invariant: each request of a bucket names a key that never exists (absent). A
// server that hands the bucket's slot over to another one has some keys of it,
// and not others. It refuses a request of several keys if it lacks one of them,
// so it refuses each request, before the script runs.
// Invariant: the names of a bucket have no redlock key. That is the bare name,
// which lies in another slot.

import (
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
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

// TrialKeys are those of a name that no lock can have, for a write that finds
// out whether the node takes any.
func TrialKeys(prefix string) Keys { return NewKeysBeside(prefix, "", ":try") }

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
	if k.bare() {
		return k.name
	}
	return k.ours(plainBeside)
}

// bare reports whether the redlock key is the name itself, for other Redlock
// clients. A side of a name, and a register that decides which set follows,
// are ours alone: their keys begin with the prefix, as all others do.
func (k Keys) bare() bool { return k.side == "" && !protocol.IsSuccessor(k.name) }

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
	if k.bare() {
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

// Buckets is how many buckets a node in cluster mode has. It is a part of the
// layout of the keys: clients with different numbers would have a name in two
// buckets, and two holders.
const Buckets = 64

// BucketOf returns the bucket of a name. Invariant: no version changes it. Two
// clients that put one name in two buckets would both hold it.
func BucketOf(name string) int {
	h := uint32(2166136261) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return int((h ^ h>>16) % Buckets)
}

// BucketPrefix returns the prefix of the keys of a bucket. Its braces are the
// hash tag.
func BucketPrefix(prefix string, bucket int) string {
	return "{" + prefix + ":" + strconv.Itoa(bucket) + "}"
}

// tagOf is the prefix of a bucket's key, empty if the key is of no bucket: no
// other prefix, and no name, has a brace.
func tagOf(key string) string {
	if key == "" || key[0] != '{' {
		return ""
	}
	return key[:strings.IndexByte(key, '}')+1]
}

// absent is how the key ends that never exists.
const absent = ":none"

// AbsentKey is the key of a bucket that never exists, empty if the key is of no
// bucket.
func AbsentKey(of string) string {
	if tag := tagOf(of); tag != "" {
		return tag + absent
	}
	return ""
}

// appendKeys appends the number of keys, and the keys with the absent one
// behind them.
func appendKeys(dst []byte, keys ...string) []byte {
	tag := tagOf(keys[0])
	dst = resp.AppendInt(dst, int64(len(keys)+more(tag)))
	for _, k := range keys {
		dst = resp.AppendString(dst, k)
	}
	if tag != "" {
		dst = resp.AppendJoined(dst, tag, absent)
	}
	return dst
}

// more is how many keys a request has more because of its bucket.
func more(tag string) int {
	if tag == "" {
		return 0
	}
	return 1
}

// capacity is the capacity as the scripts get it. They give a redlock key to
// the capacity that is written "1".
func (k Keys) capacity(dst []byte, capacity uint64) []byte {
	if capacity == 1 && tagOf(k.prefix) != "" {
		return append(dst, "01"...)
	}
	return strconv.AppendUint(dst, capacity, 10)
}
