package script

// This file owns the bytes of each command. The Append functions write to the
// caller's buffer, so that a renewal allocates nothing.
// Invariant: argument positions are those that the scripts read
// (scripts/open.lua).

import (
	"encoding/hex"
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
)

// ReadShort is the command that reads a marker or a turn. Other programs may
// write there, so no more is read than a text of ours has: a value of 100 MB
// stops a server for as long as it takes to lose holds. The scripts keep to the
// same bounds.
func ReadShort(key string) []string { return []string{"GETRANGE", key, "0", "1023"} }

// ReadLong is ReadShort for a record, or for the set.
func ReadLong(key string) []string { return []string{"GETRANGE", key, "0", "1048575"} }

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
