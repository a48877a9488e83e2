// Package resp speaks the part of the Redis protocol (RESP2 and RESP3) that
// scripts, their answers and pushes need, without allocating per value.
package resp

import (
	"errors"
	"math"
	"strings"
)

// Value is one element of a reply: an integer, or a string when Str is not nil.
type Value struct {
	Int int64
	Str []byte // valid until the callback that was given it returns
}

// Limits on one reply. A node that lies about a length can make us allocate at
// most MaxReply, whatever it announces.
const (
	MaxBulk   = 1 << 20  // bytes of one string
	MaxValues = 1e6      // elements, nested ones included
	MaxReply  = 16 << 20 // bytes of all strings of one reply
	maxDepth  = 8
	lineSize  = 16 << 10 // also bounds a simple string or an error
)

// Error is an error reply of the node, such as "NOSCRIPT No matching script".
// The framing is intact: the next reply can be read.
type Error string

func (e Error) Error() string { return string(e) }

// Code is the first word: "NOSCRIPT", "WRONGTYPE", "NOAUTH", "ERR", …
func (e Error) Code() string {
	code, _, _ := strings.Cut(string(e), " ")
	return code
}

// ErrProtocol is in the chain of every error that means: these bytes are
// neither RESP2 nor RESP3, or break a limit. What follows on the stream cannot
// be interpreted.
var ErrProtocol = errors.New("resp: malformed reply")

// Numbers returns the values of an answer that is one text of numbers, with a
// blank between them; every other answer as it is. It is read into room, and
// has no more values than that has.
func Numbers(room, v []Value) []Value {
	if len(v) != 1 || v[0].Str == nil {
		return v
	}
	text, dst := v[0].Str, room[:0]
	for start, i := 0, 0; i <= len(text); i++ {
		if i < len(text) && text[i] != ' ' {
			continue
		}
		n, ok := parseInt(text[start:i])
		if !ok || len(dst) == cap(dst) {
			return v
		}
		dst = append(dst, Value{Int: n})
		start = i + 1
	}
	return dst
}

// parseInt reads a decimal number as nodes write it: strconv.ParseInt would
// cost a string.
func parseInt(b []byte) (int64, bool) {
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	var n uint64 // 19 digits never overflow it
	for _, d := range b {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + uint64(d-'0')
	}
	switch {
	case neg && n <= 1<<63:
		return -int64(n), true
	case !neg && n <= math.MaxInt64:
		return int64(n), true
	}
	return 0, false
}
