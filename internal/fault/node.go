package fault

// This file owns the errors of one node, and which of them do not pass.

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

// What a client says of a node.
var (
	ErrNoAnswer         = errors.New("has not answered")
	ErrAhead            = errors.New("others are ahead")
	ErrForeign          = errors.New("another library holds the key of that name (redsync, symfony/lock, Redisson or another)")
	ErrForgetful        = errors.New("is new or lost its data, and the other nodes have not repaired it yet")
	ErrParted           = errors.New("its clock and this process's clock disagree; its answers do not count until other nodes show which one is wrong")
	ErrOtherIncarnation = errors.New("has lost its data, or loaded another node's data, since the client connected")
	ErrTooOld           = errors.New("is too old")
	ErrSentinel         = errors.New("is a Sentinel, and the URL names no master: add ?master_name=NAME")
	ErrReplica          = errors.New("is a replica, but a node must be a master: list the master, or its Sentinels")
	ErrClusterMode      = errors.New("is one server of a cluster and cannot be a node on its own: list the whole cluster, with redis+cluster://host:port or redis.NewClusterClient, " +
		"or a server that runs with cluster-enabled no")
	// ErrNoInfo is a server that does not tell which run of it this is. It may
	// have lost its data with a restart, and nothing would show that.
	ErrNoInfo = errors.New("does not report its run_id in INFO, so a restart would go unnoticed")
)

// NoInfo is ErrNoInfo with what the server answered, and what to do.
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

// JumpedError says that a node's clock has jumped: see EventClockJumped.
type JumpedError struct{ By time.Duration }

func (e *JumpedError) Error() string {
	return fmt.Sprintf("its clock has jumped by %+v", e.By.Round(time.Millisecond))
}

// ClockError is a node that does not take a claim's ticket, or takes it where
// it does not count, since the ticket and the node's clock are too far apart.
type ClockError struct{ Ahead time.Duration }

func (e *ClockError) Error() string {
	where := "behind"
	if e.Ahead < 0 {
		where = "ahead of"
	}
	return fmt.Sprintf("its clock is %v %s the other nodes' clocks; correct the wrong clock (NTP)", e.Ahead.Abs().Round(time.Millisecond), where)
}

// AheadError is a name that is asked for so often that its tickets have run
// ahead of a node's clock, or a node that keeps a forged ticket.
type AheadError struct{ Wait time.Duration }

func (e *AheadError) Error() string {
	return fmt.Sprintf("its last ticket for the name is too far ahead of its clock; retry in %v", e.Wait)
}

// RecoveringError is a node that is new or lost its data, and does not vote
// yet. Wait is what is left of its guard time when it answered.
type RecoveringError struct{ Wait time.Duration }

func (e *RecoveringError) Error() string {
	return fmt.Sprintf("is new or lost its data, and votes in %v", e.Wait.Round(time.Millisecond))
}

// ClashError is a name that is in use as another kind of primitive, or as a
// semaphore of another number of permits.
type ClashError struct{ Asked, InForce uint64 }

func (e *ClashError) Error() string {
	return fmt.Sprintf("the name is in use as %s, not as %s; choose another name", kind(e.InForce), kind(e.Asked))
}

// kind names the primitives of a capacity: all that a node knows of the kind.
func kind(capacity uint64) string {
	switch capacity {
	case 1:
		return "a mutex, once or leader (capacity 1)"
	case protocol.Writer:
		return "an rwmutex"
	}
	return fmt.Sprintf("a semaphore of %d permits", capacity)
}

// WriteError is a node that answers and refuses the write by which a lock
// begins. Err is what the server says.
type WriteError struct{ Err error }

func (e *WriteError) Error() string {
	return "refuses new locks: " + e.Err.Error() + ": " + cmp.Or(WriteRemedy(e.Err), "look at its log")
}

func (e *WriteError) Unwrap() error { return e.Err }

// WriteRemedy is what to do about a server that refuses a write with err, empty
// if that is not known.
func WriteRemedy(err error) string {
	e, refused := errors.AsType[resp.Error](err)
	switch code := e.Code(); {
	case !refused:
		return ""
	case strings.Contains(e.Error(), "OOM command not allowed"): // before Redis 7.0 the code is ERR
		return "existing holds are not affected; raise that server's maxmemory, or free memory"
	case code == "NOREPLICAS":
		return "start its replicas, or lower its min-replicas-to-write"
	case code == "MISCONF":
		return "free space on its disk, or look at its log"
	case code == "NOPERM":
		return "grant its user the rights in docs/reference/security.md"
	}
	return ""
}

// ForGood reports whether a node's error will not go away by waiting. It goes
// by the server's words, since Redis has no codes for most of these. A word
// that is missing here costs time and no safety. One that is here by mistake
// would make a Lock fail that could have succeeded.
func ForGood(err error) bool {
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted || errors.Is(err, ErrTooOld) || errors.Is(err, ErrSentinel) || errors.Is(err, transport.ErrNoMaster) || errors.Is(err, ErrNoInfo) || errors.Is(err, ErrClusterMode) || ClusterMode(err) {
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
	// The words are compared as they come. Each is tested on the servers that
	// have it (internal/compat), as a later version may word it otherwise.
	msg := err.Error()
	for _, code := range []string{
		"remote error: tls: certificate required", // a server that wants one of the client
		"cluster support disabled",                // a server that is given as a cluster
		"WRONGTYPE", "WRONGPASS", "NOAUTH", "NOPERM", "ERR unknown command", "ERR AUTH",
		// A login that an older server refuses, and a database that a server
		// does not have.
		"ERR invalid password", "ERR Client sent AUTH", "ERR wrong number of arguments for 'auth'",
		"ERR DB index is out of range", "ERR invalid DB index", "ERR SELECT is not allowed",
		// A server that does not tell its version, and is too old.
		notInOld,
		// A right that a script lacks, in the words of Redis 7.0 and later.
		"ERR The user executing the script can't", "ERR ACL failure in script",
	} {
		if strings.Contains(msg, code) {
			return true
		}
	}
	return false
}

// Refused reports whether a node was reached: it has said why it is of no use,
// or this client has found that out.
func Refused(err error) bool {
	_, answered := errors.AsType[resp.Error](err)
	return answered || ForGood(err) || errors.Is(err, ErrReplica) || errors.Is(err, resp.ErrProtocol)
}

const NeedsEffects = "its scripts cannot write after reading the clock; use Redis 5.0 or later, or Valkey"

// notInOld is what a server before Redis 5 says of each script.
const notInOld = "Write commands not allowed after non deterministic commands"

// NamesAge adds what notInOld means: a server may hide its version.
func NamesAge(err error) error {
	if e, ok := errors.AsType[resp.Error](err); ok && strings.Contains(e.Error(), notInOld) {
		return fmt.Errorf("%w: the server %w: %s", err, ErrTooOld, NeedsEffects)
	}
	return err
}

// ClusterMode reports whether a node's error is one that only servers in
// cluster mode give. Invariant: no call waits for such a node.
func ClusterMode(err error) bool {
	e, ok := errors.AsType[resp.Error](err)
	return ok && slices.Contains([]string{"CROSSSLOT", "CLUSTERDOWN", "MOVED", "ASK"}, e.Code()) //mutant:ClusterMode=false
}

// Misuse reports whether an error will be the same whenever the call is
// repeated. A clash will not: the other use of the name may end, and may be
// another program's mistake.
func Misuse(err error) bool {
	_, clash := errors.AsType[*ClashError](err)
	return errors.Is(err, ErrInvalid) && !clash
}

// Count says how many there are of what a noun names.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
