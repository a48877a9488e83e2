package script

// This file owns the keys of a bucket: those of some names, and a marker of
// their own, that lie in one slot of Redis Cluster.
// Invariant: each request of a bucket names a key that never exists (absent). A
// server that hands the bucket's slot over to another one has some keys of it,
// and not others. It refuses a request of several keys if it lacks one of them,
// so it refuses each request, before the script runs.
// Invariant: the names of a bucket have no redlock key. That is the bare name,
// which lies in another slot.

import (
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/resp"
)

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
