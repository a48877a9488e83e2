package core

// This file owns what errors of the core say. A Failure has a sentinel that
// says what is the matter, and for each node what that node had to do with it.
// No decision depends on a text here, save ForGood's.

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// The sentinels that the root package exports; see there.
var (
	ErrHeld     = errors.New("held by another client")
	ErrNoQuorum = errors.New("no quorum of nodes")
	ErrLost     = errors.New("lock lost")
	ErrNotHeld  = errors.New("not held")
	ErrClosed   = errors.New("quorum closed")
	ErrReleased = errors.New("released")
	ErrInvalid  = errors.New("invalid use")
	ErrEvicted  = fmt.Errorf("%w: an operator has evicted the holder", ErrLost)
)

// Failure is why an operation failed, before the root package dresses it as
// its exported Error.
// It is complete when it is returned, and is not changed afterwards.
type Failure struct {
	Err    error // the sentinel, or the sentinel joined with the context's error
	Votes  int
	Needed int
	Nodes  []NodeFailure
}

// NodeFailure is what one node had to do with it.
type NodeFailure struct {
	Addr string
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap lets errors.Is and errors.As see the sentinel and each node's error.
func (f *Failure) Unwrap() []error {
	errs := []error{f.Err}
	for _, n := range f.Nodes {
		errs = append(errs, n.Err)
	}
	return errs
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

// Writer is what a writer of an rwmutex weighs, and the capacity that its
// readers share. More claims of readers than this would need as many processes.
const Writer = 1 << 30

// kind names the primitives of a capacity: all that a node knows of the kind.
func kind(capacity uint64) string {
	switch capacity {
	case 1:
		return "a mutex, once or leader (capacity 1)"
	case Writer:
		return "an rwmutex"
	}
	return fmt.Sprintf("a semaphore of %d permits", capacity)
}

// Misuse reports whether an error will be the same whenever the call is
// repeated. A clash will not: the other use of the name may end, and may be
// another program's mistake.
func Misuse(err error) bool {
	_, clash := errors.AsType[*ClashError](err)
	return errors.Is(err, ErrInvalid) && !clash
}

// NeverReturn is for a call that can neither succeed nor fail nor return.
func NeverReturn(log *slog.Logger, why error) {
	log.Error("quorate: a call that cannot return an error waits forever; end its goroutine before Close, or use the variant with a context", "error", why)
	select {}
}

// rejected is the error of an attempt that so many nodes refuse for good that
// it cannot have a quorum. A clash, and a list that is not the set's, are the
// caller's to mend, so the sentinel is ErrInvalid.
func (a *attempt) rejected() error {
	f := a.failure(ErrNoQuorum)
	if _, clash := errors.AsType[*ClashError](f); clash {
		f.Err = ErrInvalid
	}
	if wrong := a.q.members.wrong.Load(); wrong != nil {
		return &Failure{Err: wrong}
	}
	return f
}

var (
	errNoAnswer = errors.New("has not answered")
	errNotAsked = errors.New("has not been asked yet")
	errQueued   = errors.New("others are ahead")
	errForeign  = errors.New("another Redlock client holds the redlock key")
)

// ForGood reports whether a node's error will not go away by waiting. It goes
// by the server's words, since Redis has no codes for most of these. A word
// that is missing here costs time and no safety. One that is here by mistake
// would make a Lock fail that could have succeeded.
func ForGood(err error) bool {
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted || errors.Is(err, errTooOld) || errors.Is(err, errSentinel) || errors.Is(err, transport.ErrNoMaster) || errors.Is(err, errNoInfo) || errors.Is(err, errClusterMode) || clusterMode(err) {
		return true
	}
	if _, wrong := errors.AsType[*SetError](err); wrong {
		return true
	}
	if e, member := errors.AsType[*MemberError](err); member {
		return e.final
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

// explain adds to a node's own words what to do, where they do not say it.
// It keeps the node's error in the chain, for errors.As.
func explain(s *Spec, err error) error {
	if clusterMode(err) {
		return fmt.Errorf("%w: the node %w", err, errClusterMode)
	}
	e, ok := errors.AsType[resp.Error](err)
	if ok && strings.Contains(e.Error(), "OOM command not allowed") { // before Redis 7.0 the code is ERR
		return fmt.Errorf("%w: holds go on, and the node accepts no new locks until memory is free: raise maxmemory of that server", err)
	}
	if ok && e.Code() == "WRONGTYPE" {
		k := script.NewKeysBeside(s.Set.Prefix, s.Name, s.side)
		return fmt.Errorf("%w: one of the keys %q, %q, %q and %q is another program's; it may be its lock (Redisson keeps a hash under the name): "+
			"choose another name, and remove the key only if no program uses it",
			err, k.Plain(), k.State(), k.Queue(), k.Claims())
	}
	return err
}

// lostWhy says what ended a hold. A process that was stopped until the lease
// had ended is the cause itself, and its nodes may be well. Called with a.mu
// held, before the leaves are sent: what the nodes said last is still that of
// the hold.
func (a *attempt) lostWhy(now protocol.Time) error {
	err := ErrLost
	if a.claim.Evicted() { // by nodes that are well
		return ErrEvicted
	}
	late := a.q.ticks.Stalled(now)
	if other := a.q.deadlines.Stalled(now); other.By > late.By {
		late = other
	}
	slept := late.By > a.spec.Set.NodeTimeout && late.At > a.claim.Deadline().Add(-a.spec.Set.NodeTimeout)
	switch {
	case a.spec.Set.NoRenewal:
		err = fmt.Errorf("%w: WithoutRenewal, and no Extend came before its end", ErrLost)
	case a.claim.Muted():
		err = fmt.Errorf("%w: WithMaxHold(%v) stopped its renewal", ErrLost, a.spec.Set.MaxHold)
	case slept:
		err = fmt.Errorf("%w: this process did not run for %v or longer", ErrLost, late.By.Round(100*time.Millisecond))
	}
	f := a.failureAt(now, err)
	if slept { // it could not hear an answer
		f.Nodes = slices.DeleteFunc(f.Nodes, func(n NodeFailure) bool { return n.Err == errNoAnswer })
	}
	return f
}

// failure describes where the attempt stands, for an error.
func (a *attempt) failure(err error) *Failure {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failureAt(a.q.now(), err)
}

// failureAt is failure with a.mu held.
func (a *attempt) failureAt(now protocol.Time, err error) *Failure {
	// A node that has voted is left out: what is listed is what was missing.
	f := &Failure{Err: err, Votes: a.claim.Votes(now), Needed: a.claim.Quorum()}
	for i, n := range a.q.nodes.all() {
		if !a.claim.Asks(i) {
			continue
		}
		ne := NodeFailure{Addr: n.addr}
		switch answered, vote := a.claim.Node(i, now); {
		case a.errs[i] != nil:
			ne.Err = namesAge(a.errs[i])
		case a.claim.Untouched(i):
			ne.Err = errNotAsked
		case !answered:
			ne.Err = errNoAnswer
		case !vote:
			ne.Err = errQueued
		default:
			continue
		}
		f.Nodes = append(f.Nodes, ne)
	}
	return f
}
