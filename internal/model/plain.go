package model

// This file owns the redlock key of a mutex: the plain key that clients of
// other Redlock libraries lock.
//
// Invariant: while a mutex's claim has the vote here, the redlock key names it
// and lasts as long as its lease. Without that another Redlock client takes the
// key beside a holder.
// Invariant: a key that another client has set is never overwritten.

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// SetPlain is another Redlock client's SET NX PX on the redlock key; without a
// ttl it is for good.
func (n *Node) SetPlain(now int64, value string, ttl time.Duration) bool {
	if n.redlockKeyAt(now) != "" {
		return false
	}
	n.plain, n.plainEnd = value, forGood
	if ttl > 0 {
		n.plainEnd = now + ttl.Milliseconds()
	}
	return true
}

// DelPlain is another client's compare-and-delete on the redlock key; value ""
// deletes whatever is there.
func (n *Node) DelPlain(now int64, value string) bool {
	p := n.redlockKeyAt(now)
	if p == "" || (value != "" && p != value) {
		return false
	}
	n.plain = ""
	return true
}

// Plain returns the redlock key's value at now, "" when there is none.
func (n *Node) Plain(now int64) string { return n.redlockKeyAt(now) }

// PlainLeft returns for how long the redlock key stays.
func (n *Node) PlainLeft(now int64) time.Duration {
	return time.Duration(n.plainEnd-now) * time.Millisecond
}

// mayTakeRedlockKey reports whether the redlock key is absent or names claim c.
func (v *visit) mayTakeRedlockKey(c *Claim) bool {
	p := v.redlockKeyAt(v.now)
	return p == "" || p == c.ID.String()
}

// takeRedlockKey makes the redlock key name claim c for as long as its lease,
// unless it is another's.
func (v *visit) takeRedlockKey(c *Claim) bool {
	if !v.mayTakeRedlockKey(c) {
		return false
	}
	v.plain, v.plainEnd = c.ID.String(), c.Expiry
	return true
}

// releaseRedlockKey deletes the redlock key if it names claim id.
func (v *visit) releaseRedlockKey(id protocol.ID) {
	if v.plain == id.String() {
		v.plain = ""
	}
}

// hasRedlockKey reports whether the name has a redlock key, as a mutex has that
// is in no bucket.
func (v *visit) hasRedlockKey() bool { return v.capacity == 1 && !v.counting && !v.Bucketed }

// redlockKeyAt is the redlock key's value at now.
func (n *Node) redlockKeyAt(now int64) string {
	if n.plainEnd <= now {
		return ""
	}
	return n.plain
}
