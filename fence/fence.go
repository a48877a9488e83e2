// Package fence rejects stale writes from a process that slept through its
// lease.
//
// A lock cannot stop such a process: it wakes up, does not know yet that
// another process holds the lock, and writes once more. But the resource it
// writes to can stop it. Each hold has a token (see
// [github.com/quorate/quorate.Lease]), and later holders have higher tokens.
// The resource remembers the highest token it has seen, called the fence, and
// rejects writes with a lower one:
//
//   - PostgreSQL, MySQL, SQLite: [Dialect.Check] in the same transaction as the
//     write
//   - Redis: a [Script], which checks and writes in one step
//   - an HTTP service: [Handler] in the service, [Transport] in its clients
//   - an object store with conditional writes: see the package example
//
// # What to compare with what
//
// Tokens are only comparable if they come from the same lock. So name the fence
// after the lock, for example "orders", and include the number of a shard, as
// in "mailboxes/7". If two locks guard the same rows, use two fences, and have
// each write check the fence of every lock that its process holds.
//
// Equal tokens belong to the same hold, so they pass. Tokens follow the nodes'
// clocks. If the clocks were far ahead and the nodes have been emptied since,
// new tokens are lower than the fence, so remove the fence.
//
// Check the fence before you read any data that your work depends on. From then
// on, no write of an earlier holder can get in between.
//
// # What a fence cannot do
//
//   - It cannot undo what a paused holder wrote before the next holder's first
//     check.
//   - It cannot protect a resource that does not check tokens, such as a mail
//     server.
//   - It cannot order holders that work at the same time. With a semaphore or a
//     read lock, a lower token is still valid.
package fence

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// ErrStale means that a later holder has already used the resource. The error
// message includes both tokens. The lock is lost: write nothing, roll back, and
// stop the work.
var ErrStale = errors.New("a later holder has been here")

// stale is an ErrStale with the tokens.
type stale struct {
	name           string
	token, highest uint64
}

func (e *stale) Error() string {
	return fmt.Sprintf("fence %q: token %d is stale, a later holder with token %d has been here: "+
		"write nothing, roll back, and end the work of this hold", e.name, e.token, e.highest)
}

func (e *stale) Unwrap() error { return ErrStale }

// compare returns an ErrStale if the token is lower than the highest.
func compare(name string, token, highest uint64) error {
	if token < highest {
		return &stale{name, token, highest}
	}
	return nil
}

// maxName is the longest name, in bytes: what MySQL can have as a key.
const maxName = 255

// validate refuses names that not all of the databases can store, and tokens
// that no hold has.
func validate(name string, token uint64) error {
	if err := validName(name); err != nil {
		return err
	}
	return validToken(name, token)
}

func validName(name string) error {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("fence %q: a name has 1 to %d bytes of UTF-8, and no zero byte", name, maxName)
	}
	return nil
}

func validToken(name string, token uint64) error {
	if token == 0 || token > math.MaxInt64 {
		return fmt.Errorf("fence %q: no hold has the token %d: pass what Token of the lease returns", name, token)
	}
	return nil
}
