// Package fence refuses the late writes of a process that slept through its
// lease.
//
// A lock cannot stop such a process: it wakes up, does not know yet that
// another process holds the lock, and writes once more. The resource that it
// writes to can stop it. Each hold has a token; see
// [github.com/quorate/quorate.Lease], and a later holder's token is higher. The
// resource remembers the highest token that it has seen, the fence, and refuses
// a write with a lower one:
//
//   - PostgreSQL, MySQL, SQLite: [Dialect.Check] in the transaction of the write
//   - Redis: a [Script], which checks and writes in one step
//   - a service that you call over HTTP: [Handler] there, [Transport] here
//   - an object store with conditional writes: the package's example
//
// # What to compare with what
//
// Compare a token only with tokens of the same lock. So name the fence after
// the lock, as in "orders", and the shards of a lock with their number, as in
// "mailboxes/7". Two locks that guard the same rows need two fences, and a write
// checks the fence of each lock that its process holds.
//
// Tokens that are equal belong to the same hold, so they pass. Tokens follow the
// clocks of the nodes. If those were far ahead, and the nodes were emptied after
// that, then new tokens are lower: remove the fence.
//
// Check the fence before you read what the work depends on. From then on no
// write of an earlier holder can come in between.
//
// # What a fence cannot do
//
//   - It cannot undo what a paused holder wrote before the next holder's first
//     check.
//   - It cannot protect a resource that does not check, such as an e-mail
//     server.
//   - It cannot order holders that may work at the same time. A lower token of a
//     semaphore or of a read lock is still valid.
package fence

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// ErrStale says that a later holder has been at the resource. The error's text
// names both tokens. Write nothing, roll back, and end the work of this hold:
// the lock is lost.
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
