package script

// Encoding of commands. The Append functions write to the caller's buffer, so
// that a renewal allocates nothing.
// Invariant: the arguments are at the positions where the scripts read them
// (scripts/open.lua).

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// Flags of a request. They are one number, because another word in a command
// costs the node more than the addition.
const (
	flagList   = 2
	flagSettle = 4
	flagInsist = 8 // a beat or settle that is not patient. An ordinary beat is patient, and has no flags
)

// ReadShort returns the command that reads a marker or a turn. It reads no more
// than our own values need: another program may have written there, and reading
// a value of 100 MB would block a server long enough to lose holds. The scripts
// have the same bounds.
func ReadShort(key string) []string { return []string{"GETRANGE", key, "0", "1023"} }

// ReadLong is like ReadShort, for values of up to 1 MiB: a record, or a node's set.
// set.lua and record.lua use the same bound.
func ReadLong(key string) []string { return []string{"GETRANGE", key, "0", "1048575"} }

// AppendCommand appends the EVALSHA that sends request r of the claim with
// terms t to a node. Pushes for the claim go to the channel owner. A beat
// contains no weight and no owner, because the node has them since the join.
// AppendCommand runs for each Lock and each renewal.
func AppendCommand(
	dst []byte, k Keys, t *protocol.Terms, owner string, guard, retention time.Duration, r protocol.Request,
) []byte {
	if r.Op >= protocol.OpRead {
		return appendRecord(dst, k, t, owner, guard, r)
	}
	keys := 5
	if t.Counting {
		keys = 6
	}
	var buf [lifeSize]byte
	l, one := newLife(buf[:0], k, t, r.Ticket), isOne(k, t)
	ttl, keep := t.TTL.Milliseconds(), (t.TTL + retention).Milliseconds()
	switch r.Op {
	case protocol.OpLeave:
		dst = appendEval(dst, built().leave.SHA, k, keys, pick(one, 2, 3))
		dst = resp.AppendBytes(dst, l.head())
		dst = resp.AppendBytes(dst, appendTimes(buf[len(l.text):len(l.text)], guard, keep))
		if !one {
			dst = resp.AppendBytes(dst, l.capacity())
		}
	case protocol.OpBeat:
		flags := flagsOf(r)
		usual := one && flags == 0
		dst = appendEval(dst, built().beat.SHA, k, keys,
			pick(usual, 4, pick(flags == 0, 5, pick(r.List, 7, 6))))
		dst = resp.AppendBytes(dst, l.id())
		dst = resp.AppendInt(dst, ttl)
		dst = resp.AppendInt(dst, keep)
		dst = resp.AppendInt(dst, guard.Milliseconds())
		if !usual {
			dst = resp.AppendBytes(dst, l.capacity())
		}
		if flags != 0 {
			dst = resp.AppendInt(dst, int64(flags))
		}
		if r.List {
			dst = resp.AppendInt(dst, int64(r.Ticket))
		}
	default: // join and settle
		flags := flagsOf(r)
		usual := one && flags == 0
		dst = appendEval(dst, built().enter.SHA, k, keys, pick(usual, 6, pick(flags == 0, 7, 8)))
		dst = resp.AppendBytes(dst, l.id())
		dst = resp.AppendBytes(dst, l.ticket())
		dst = resp.AppendInt(dst, ttl)
		dst = resp.AppendInt(dst, keep)
		dst = resp.AppendInt(dst, guard.Milliseconds())
		dst = appendTail(dst, t.Notify, owner)
		if !usual {
			dst = resp.AppendBytes(dst, l.weights())
		}
		if flags != 0 {
			dst = resp.AppendInt(dst, int64(flags))
		}
	}
	return dst
}

func appendEval(dst []byte, sha string, k Keys, keys, args int) []byte {
	dst = resp.AppendArray(dst, 3+keys+args)
	dst = resp.AppendString(resp.AppendString(dst, "EVALSHA"), sha)
	return k.appendClaims(dst, keys)
}

func pick(first bool, a, b int) int {
	if first {
		return a
	}
	return b
}

func flagsOf(r protocol.Request) (flags int) {
	if r.List {
		flags |= flagList
	}
	if r.Op == protocol.OpSettle {
		flags |= flagSettle
	}
	if !r.Patient && r.Op != protocol.OpJoin {
		flags |= flagInsist
	}
	return flags
}

// isOne reports whether capacity and weight can be omitted because they are
// those of a mutex.
func isOne(k Keys, t *protocol.Terms) bool {
	return t.Capacity == 1 && t.Weight == 1 && !t.Counting && tagOf(k.prefix) == ""
}

// life is the beginning of the stored state of a claim that is alone and whose
// ticket is the fence, up to the expiry: "S<ticket> <id>+<capacity> <weight> ".
// Invariant: these are exactly the bytes that the scripts store, because the
// scripts compare the two. See scripts/open.lua.
type life struct {
	text []byte
	plus int // index of the "+"
}

const (
	lifeSize = 160
	idSize   = 2 * len(protocol.ID{})
)

func newLife(buf []byte, k Keys, t *protocol.Terms, ticket protocol.Ticket) life {
	b := strconv.AppendUint(append(buf, 'S'), uint64(ticket), 10)
	b = hex.AppendEncode(append(b, ' '), t.ID[:])
	plus := len(b)
	b = append(k.capacity(append(b, '+'), t.Capacity), ' ')
	return life{append(strconv.AppendUint(b, t.Weight, 10), ' '), plus}
}

func (l life) head() []byte    { return l.text[:l.plus+1] }
func (l life) fence() []byte   { return l.text[:l.plus] }
func (l life) id() []byte      { return l.text[l.plus-idSize : l.plus] }
func (l life) ticket() []byte  { return l.text[1 : l.plus-idSize-1] }
func (l life) weights() []byte { return l.text[l.plus:] }

func (l life) capacity() []byte {
	w := l.weights()[1:]
	return w[:bytes.IndexByte(w, ' ')]
}

// appendTimes appends the two durations that a leave needs only if the claim is
// not alone.
func appendTimes(dst []byte, guard time.Duration, keep int64) []byte {
	dst = strconv.AppendInt(dst, guard.Milliseconds(), 10)
	return strconv.AppendInt(append(dst, ' '), keep, 10)
}

// appendTail appends the end of such a state, after the expiry. The lower flag
// means that the claim wants to be told about waiters, the higher one that it
// has the vote.
func appendTail(dst []byte, notify bool, owner string) []byte {
	flags := " 2 "
	if notify {
		flags = " 3 "
	}
	return resp.AppendJoined(dst, flags, owner)
}

// AppendMark appends the EVALSHA with which a client that has just connected
// tells the node which run of the server it sees. marker is the marker's key.
// jumped is an incarnation in decimal that must not be trusted although the
// server was not restarted, or empty. The node makes a new incarnation from
// random if it needs one. runID must not be empty.
func AppendMark(dst []byte, marker string, random protocol.ID, runID, jumped string) []byte {
	dst = resp.AppendArray(dst, 3+1+more(tagOf(marker))+3)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, built().mark.SHA)
	dst = appendKeys(dst, marker)
	dst = resp.AppendString(dst, random.String())
	dst = resp.AppendString(dst, runID)
	return resp.AppendString(dst, jumped)
}

// AppendLoad appends the SCRIPT LOAD of s. Clients send it to a node that
// answers NOSCRIPT, which happens after a restart or a SCRIPT FLUSH.
func AppendLoad(dst []byte, s Script) []byte {
	return resp.AppendCommand(dst, "SCRIPT", "LOAD", s.Source)
}
