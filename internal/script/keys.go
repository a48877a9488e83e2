package script

// The keys of a name and of a bucket. A bucket is a share of the names with a
// marker of its own, in one slot of Redis Cluster.
// Invariant: every key that a script touches is among its KEYS. ACL rules by
// key, and proxies that route by key, depend on that.
// Invariant: each request of a bucket includes a key that never exists
// (absent). While a server hands a slot over to another one, it has some of the
// slot's keys and not others, and refuses a request with several keys if it
// lacks one of them. With the absent key it refuses every request of the
// bucket, before the script runs.
// Invariant: the names of a bucket have no redlock key. That key is the bare
// name, which lies in another slot.

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
//	PREFIX:{NAME}           the fence, the capacity, and the claim of a mutex if it is the only one
//	PREFIX:{NAME}:q, :c     the queue by ticket, and the node's data about each claim
//	PREFIX:{NAME}:r, :w     the record and its watchers
//	PREFIX:{NAME}:n         the side on which a semaphore's number of permits is decided
//	PREFIX:{}:STAMP         the marker of the node, shared by all names
//
// A Keys stores only the parts. The keys are assembled when they are sent,
// because a process may hold a great many names.
type Keys struct{ prefix, name, side, home string }

// NewKeys returns the keys of name. With the prefix of a bucket, all keys hash
// to one slot. Without one, the redlock key and the marker may hash to other
// slots, which does not matter because the node is a single server.
func NewKeys(prefix, name string) Keys { return NewKeysBeside(prefix, name, "") }

// At returns the keys for requests that are based on home's configuration. The
// nodes of each configuration have their markers at a key of its own, so no
// other node accepts the request.
func (k Keys) At(home Home) Keys {
	k.home = home.end()
	return k
}

// Number is the side of a name where a semaphore's number of permits is
// recorded. Its keys differ from those of every other name, because no name
// contains a brace.
const Number = ":n"

// TrialKeys returns the keys of a name that no lock can have. They are for a
// write that tests whether the node accepts writes.
func TrialKeys(prefix string) Keys { return NewKeysBeside(prefix, "", ":try") }

// NewKeysBeside returns the keys of one side of name, which has a lock and a
// record of its own. The empty side is the name itself.
func NewKeysBeside(prefix, name, side string) Keys {
	return Keys{prefix: prefix, name: name, side: side, home: sets}
}

// Suffixes of the keys that begin like the state's key.
const (
	plainBeside = ":p"
	queue       = ":q"
	claims      = ":c"
	recorded    = ":r"
	watchers    = ":w"
)

// ours returns the state's key, with end appended. The braces are the hash tag
// of Redis Cluster: all keys of a name and its sides share a slot.
func (k Keys) ours(end string) string { return k.prefix + ":{" + k.name + "}" + k.side + end }

func (k Keys) appendOurs(dst []byte, end string) []byte {
	return resp.AppendJoined(dst, k.prefix, ":{", k.name, "}", k.side, end)
}

// Plain is the redlock key or, in a bucket, the key that never exists. State,
// Queue and Claims are our own keys of the name. Marker is the node's marker.
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
// clients. Sides of a name and the registers that decide which set follows are
// our own, so their keys begin with the prefix like all others.
func (k Keys) bare() bool { return k.side == "" && !protocol.IsSuccessorRegister(k.name) }

func (k Keys) State() string { return k.ours("") }

func (k Keys) Queue() string { return k.ours(queue) }

func (k Keys) Claims() string { return k.ours(claims) }

func (k Keys) Marker() string { return k.prefix + k.home }

// Record returns the key of the name's record.
func (k Keys) Record() string { return k.ours(recorded) }

// Watchers is the key of the clients that watch the record.
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

// appendClaims appends the number of keys, and the keys that concern claims:
// five, or six with the key of a semaphore's number of permits.
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

// appendRecord appends the number of keys, and the keys that concern the
// record.
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

const sets = ":{}:" // no name is empty, so no key of a name contains this

// SpreadKeys returns the marker's key and two keys that do not exist. The
// latter two are in different slots, because their braces differ, whatever the
// prefix is. So a server in cluster mode refuses to look up the three together.
func SpreadKeys(marker, prefix string) []string {
	return []string{marker, prefix + ":{a}" + absent, prefix + ":{b}" + absent}
}

// Home is the end of the marker's key for one configuration. It is stored
// assembled, because a request must not allocate. It is empty while no set is
// known; the marker's key is then one that never exists.
type Home string

// HomeOf returns the Home of a configuration. It is empty if the stamp is.
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

// SetKey is the key where a node records the set that it belongs to.
func SetKey(prefix string) string { return prefix + sets + "set" }

// TurnKey is the key that says which client's turn it is to repair the node.
func TurnKey(prefix string) string { return prefix + sets + "turn" }

// Pattern returns a SCAN pattern for the keys of all names that match names. If
// k is in a bucket, the pattern covers all buckets.
func Pattern(k Keys, names string) string {
	prefix := globQuote.Replace(k.prefix)
	if i := strings.LastIndexByte(prefix, ':'); tagOf(k.prefix) != "" {
		prefix = prefix[:i] + ":*}"
	}
	return prefix + ":{" + names + "}*"
}

// A prefix may contain any byte, so the special characters of SCAN's patterns
// are quoted.
var globQuote = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// Buckets is the number of buckets of a node in cluster mode. It is part of the
// layout of the keys: clients with different numbers would put a name in two
// buckets, which could give it two holders.
const Buckets = 64

// BucketOf returns the bucket of a name.
// Invariant: the result is the same in every version. If two clients put one
// name in two buckets, both could hold it.
func BucketOf(name string) int {
	h := uint32(2166136261) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return int((h ^ h>>16) % Buckets)
}

// BucketPrefix returns the prefix of a bucket's keys. Its braces are the hash
// tag.
func BucketPrefix(prefix string, bucket int) string {
	return "{" + prefix + ":" + strconv.Itoa(bucket) + "}"
}

// tagOf returns the hash tag of a bucket's key, or "" if the key is in no
// bucket. Only the keys of buckets begin with a brace.
func tagOf(key string) string {
	if key == "" || key[0] != '{' {
		return ""
	}
	return key[:strings.IndexByte(key, '}')+1]
}

// absent is the end of the key that never exists.
const absent = ":none"

// AbsentKey returns the key that never exists in the bucket of key of, or "" if
// of is in no bucket.
func AbsentKey(of string) string {
	if tag := tagOf(of); tag != "" {
		return tag + absent
	}
	return ""
}

// appendKeys appends the number of keys and the keys. In a bucket it adds the
// absent key.
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

// more returns how many extra keys a request has because of its bucket.
func more(tag string) int {
	if tag == "" {
		return 0
	}
	return 1
}

// capacity appends the capacity as the scripts expect it. The scripts use a
// redlock key if the capacity is written "1", so in a bucket it is written
// "01".
func (k Keys) capacity(dst []byte, capacity uint64) []byte {
	if capacity == 1 && tagOf(k.prefix) != "" {
		return append(dst, "01"...)
	}
	return strconv.AppendUint(dst, capacity, 10)
}
