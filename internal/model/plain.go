package model

// The Redlock key of a mutex: the plain key that other Redlock libraries lock.
//
// Invariant: while a mutex's claim has the vote here, the redlock key names it
// and lasts as long as its lease. Without that another Redlock client takes the
// key alongside a holder.
// Invariant: a key that another client has set is never overwritten.

import (
	"math"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// RedlockKey is that key.
type RedlockKey struct {
	plain    string // "" is absent
	plainEnd int64
}

// forGood is the end of a Redlock key without a lease. It is half of the range,
// because a ttl may be added to it.
const forGood = math.MaxInt64 / 2

// Set is another Redlock client's SET NX PX on the redlock key; without a
// ttl it is permanent.
func (k *RedlockKey) Set(now int64, value string, ttl time.Duration) bool {
	if k.Value(now) != "" {
		return false
	}
	k.plain, k.plainEnd = value, forGood
	if ttl > 0 {
		k.plainEnd = now + ttl.Milliseconds()
	}
	return true
}

// Delete is another client's compare-and-delete on the redlock key; value ""
// deletes whatever is there.
func (k *RedlockKey) Delete(now int64, value string) bool {
	p := k.Value(now)
	if p == "" || (value != "" && p != value) {
		return false
	}
	k.plain = ""
	return true
}

// Value returns the Redlock key's value at now, or "" if there is none.
func (k *RedlockKey) Value(now int64) string {
	if k.plainEnd <= now {
		return ""
	}
	return k.plain
}

// mayTake reports whether the redlock key is absent or names claim c.
func (k *RedlockKey) mayTake(now int64, c *Claim) bool {
	p := k.Value(now)
	return p == "" || p == c.ID.String()
}

// take makes the redlock key name claim c for as long as its lease,
// unless it is another's.
func (k *RedlockKey) take(now int64, c *Claim) bool {
	if !k.mayTake(now, c) {
		return false
	}
	k.plain, k.plainEnd = c.ID.String(), c.Expiry
	return true
}

// release deletes the redlock key if it names claim id.
func (k *RedlockKey) release(id protocol.ID) {
	if k.plain == id.String() {
		k.plain = ""
	}
}
