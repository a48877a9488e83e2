package fault

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/transport"
)

// Reasons why a node does not count, as they appear in a NodeFailure.
var (
	ErrNoAnswer = errors.New("has not answered")
	ErrAhead    = errors.New("others are ahead")
	ErrForeign  = errors.New("another library holds the key of that name (redsync, symfony/lock, " +
		"Redisson or another)")
	ErrForgetful = errors.New("is new or lost its data, and the other nodes have not repaired it yet")
	ErrParted    = errors.New("its clock and this process's clock disagree; its answers do not count " +
		"until other nodes show which one is wrong")
	ErrOtherIncarnation = errors.New("has lost its data, or loaded another node's data, since the client " +
		"connected")
	ErrTooOld      = errors.New("is too old")
	ErrSentinel    = errors.New("is a Sentinel, and the URL names no master: add ?master_name=NAME")
	ErrReplica     = errors.New("is a replica, but a node must be a master: list the master, or its Sentinels")
	ErrClusterMode = errors.New("is one server of a cluster and cannot be a node on its own: list the " +
		"whole cluster, with redis+cluster://host:port or redis.NewClusterClient, or a server that runs with " +
		"cluster-enabled no")
	// ErrNoInfo is the error of a server that does not report its run_id. Such
	// a server may lose its data in a restart that no client would notice.
	ErrNoInfo = errors.New("does not report its run_id in INFO, so a restart would go unnoticed")
)

// NoInfo returns ErrNoInfo with the server's answer and a remedy.
func NoInfo(answer resp.Error) error {
	remedy := "miniredis cannot be a node: in tests, use package quoratetest or \"quorate nodes\""
	switch {
	case answer.Code() == "NOPERM":
		return fmt.Errorf("%w: this user may not run INFO (%q); grant +info", ErrNoInfo, string(answer))
	case strings.HasPrefix(string(answer), "ERR unknown command"):
		remedy = "remove rename-command INFO from its configuration"
	}
	if answer == "" {
		return fmt.Errorf("%w; %s", ErrNoInfo, remedy)
	}
	return fmt.Errorf("%w: it answers %q; %s", ErrNoInfo, string(answer), remedy)
}

// JumpedError is the error of a node whose clock jumped: see EventClockJumped.
type JumpedError struct{ By time.Duration }

func (e *JumpedError) Error() string {
	return fmt.Sprintf("its clock has jumped by %+v", e.By.Round(time.Millisecond))
}

// ClockError is the error of a node whose clock is too far from a claim's
// ticket. The node refuses the ticket, or accepts it at a position that does
// not count. Ahead is how far the other nodes' clocks are ahead of this one's.
type ClockError struct{ Ahead time.Duration }

func (e *ClockError) Error() string {
	where := "behind"
	if e.Ahead < 0 {
		where = "ahead of"
	}
	return fmt.Sprintf("its clock is %v %s the other nodes' clocks; correct the wrong clock (NTP)",
		e.Ahead.Abs().Round(time.Millisecond), where)
}

// AheadError is the error of a node whose last ticket for the name is far ahead
// of its clock. Either the name is requested so often that its tickets overtook
// the clock, or the node stores a forged ticket.
type AheadError struct{ Wait time.Duration }

func (e *AheadError) Error() string {
	return fmt.Sprintf("its last ticket for the name is too far ahead of its clock; retry in %v", e.Wait)
}

// RecoveringError is the error of a node that is new or lost its data and does
// not vote yet. Wait is how much of its guard time was left when it answered.
type RecoveringError struct{ Wait time.Duration }

func (e *RecoveringError) Error() string {
	return fmt.Sprintf("is new or lost its data, and votes in %v", e.Wait.Round(time.Millisecond))
}

// ClashError is the error for a name that is in use as another kind of
// primitive, or as a semaphore with a different number of permits.
type ClashError struct{ Asked, InForce uint64 }

func (e *ClashError) Error() string {
	return fmt.Sprintf("the name is in use as %s, not as %s; choose another name",
		kind(e.InForce), kind(e.Asked))
}

// kind describes the primitives that have this capacity. A node stores only the
// capacity, not the kind.
func kind(capacity uint64) string {
	switch capacity {
	case 1:
		return "a mutex, once or leader (capacity 1)"
	case protocol.Writer:
		return "an rwmutex"
	}
	return fmt.Sprintf("a semaphore of %d permits", capacity)
}

// WriteError is the error of a node that answers but refuses the write that
// starts a lock. Err is the server's error.
type WriteError struct{ Err error }

func (e *WriteError) Error() string {
	return "refuses new locks: " + e.Err.Error() + ": " + cmp.Or(WriteRemedy(e.Err), "look at its log")
}

func (e *WriteError) Unwrap() error { return e.Err }

// WriteRemedy returns what to do about a server that refused a write with err.
// It is empty if no remedy is known.
func WriteRemedy(err error) string {
	e, refused := errors.AsType[resp.Error](err)
	switch code := e.Code(); {
	case !refused:
		return ""
	case strings.Contains(e.Error(), "OOM command not allowed"): // before Redis 7.0 the code is ERR
		return "existing holds are not affected; raise that server's maxmemory, or free memory"
	case code == "NOREPLICAS":
		return "start its replicas, or lower its min-replicas-to-write"
	case code == "MISCONF", strings.Contains(e.Error(), "-MISCONF "): // before Redis 7.0 the code is ERR
		return "free space on its disk, or look at its log"
	case code == "NOPERM", strings.Contains(e.Error(), scriptLacksRight),
		strings.Contains(e.Error(), aclFailure):
		return "grant its user the rights in docs/reference/security.md"
	}
	return ""
}

// A user lacks a right that a script needs, as Redis 7.0 and later say it.
const (
	scriptLacksRight = "ERR The user executing the script can't"
	aclFailure       = "ERR ACL failure in script"
)

// Permanent reports whether a node's error is permanent, that is, waiting will
// not clear it. It matches the server's words, because Redis has no codes for
// most of these errors. A text that is missing here costs time but is safe. A
// text that is listed by mistake would fail a Lock that could have succeeded.
func Permanent(err error) bool {
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted ||
		errors.Is(err, ErrTooOld) || errors.Is(err, ErrSentinel) ||
		errors.Is(err, transport.ErrNoMaster) || errors.Is(err, ErrNoInfo) ||
		errors.Is(err, ErrClusterMode) || ClusterMode(err) {
		return true
	}
	if _, wrong := errors.AsType[*SetError](err); wrong {
		return true
	}
	if e, member := errors.AsType[*MemberError](err); member {
		return e.Final
	}
	if errors.Is(err, transport.ErrCredentials) {
		return false
	}
	// These texts are compared literally. internal/compat tests each of them on
	// the servers that send it, because a later version may change the wording.
	msg := err.Error()
	for _, code := range []string{
		"remote error: tls: certificate required", // the server requires a client certificate
		"cluster support disabled",                // a single server was configured as a cluster
		"WRONGTYPE", "WRONGPASS", "NOAUTH", "NOPERM", "ERR unknown command", "ERR AUTH",
		// An older server refused the login, or the server does not have that
		// database.
		"ERR invalid password", "ERR Client sent AUTH", "ERR wrong number of arguments for 'auth'",
		"ERR DB index is out of range", "ERR invalid DB index", "ERR SELECT is not allowed",
		scriptLacksRight, aclFailure,
	} {
		if strings.Contains(msg, code) {
			return true
		}
	}
	return false
}

// Refused reports whether err comes from a node that was reached and turned
// down: the server returned an error, or this client found it unusable.
func Refused(err error) bool {
	_, answered := errors.AsType[resp.Error](err)
	return answered || Permanent(err) || errors.Is(err, ErrReplica) || errors.Is(err, resp.ErrProtocol)
}

// ClusterMode reports whether err is one that only servers in cluster mode
// return.
// Invariant: no call waits for such a node.
func ClusterMode(err error) bool {
	e, ok := errors.AsType[resp.Error](err)
	return ok && slices.Contains([]string{"CROSSSLOT", "CLUSTERDOWN", "MOVED", "ASK"}, e.Code()) //mutant:ClusterMode=false
}

// Misuse reports whether repeating the call would return the same error. A
// ClashError does not count: the other use of the name may end, and may be
// another program's mistake.
func Misuse(err error) bool {
	_, clash := errors.AsType[*ClashError](err)
	return errors.Is(err, ErrInvalid) && !clash
}

// Count formats n with noun, in the plural unless n is 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
