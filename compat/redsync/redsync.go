// Package redsync has the methods, options and errors of
// github.com/go-redsync/redsync/v4, but runs on a quorum of independent Redis
// masters. To switch from redsync, change the import path and the argument of
// [New].
//
// Use it only for the transition (see docs/use/from-redsync.md), because
// package mutex also renews leases and has a context that ends with the hold.
// On the same nodes, package mutex, this package and redsync exclude each
// other.
//
// This package defines its own errors and does not depend on redsync. Code such
// as errors.Is(err, redsync.ErrFailed) works once you change the import path.
// Code that compares errors with those of the old import path must change as
// well.
package redsync

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// Redsync creates mutexes. It is safe for concurrent use.
type Redsync struct{ q *quorate.Quorum }

// New returns a Redsync whose mutexes are held on the nodes of q. It panics if
// q is nil.
func New(q *quorate.Quorum) *Redsync {
	if q == nil {
		panic("quorate: redsync.New: the quorum is nil; use quorate.New or quorate.Connect")
	}
	return &Redsync{q}
}

// NewMutex returns a mutex with the given name. If an option is not supported
// here, each call that would lock, extend or unlock returns an error that
// matches [quorate.ErrInvalid] and says why.
func (r *Redsync) NewMutex(name string, options ...Option) *Mutex {
	m := &Mutex{
		q: r.q, name: name, expiry: 8 * time.Second, tries: 32, driftFactor: 0.01, timeoutFactor: 0.05,
		delayFunc: func(int) time.Duration { return 50*time.Millisecond + rand.N(200*time.Millisecond) },
	}
	for _, o := range options {
		o.Apply(m)
	}
	m.settle()
	return m
}

// settle chooses the settings of the claims.
func (m *Mutex) settle() {
	const least = 10 * time.Millisecond // of a lease
	ttl := m.expiry.Truncate(time.Millisecond)
	switch {
	case m.refused != nil:
		return
	case ttl < least:
		m.refuse("WithExpiry(%v): at least %v; a number without a unit counts nanoseconds", m.expiry, least)
		return
	case m.timeoutFactor <= 0:
		m.refuse("WithTimeoutFactor(%v): must be positive", m.timeoutFactor)
		return
	case m.driftFactor < 0 || m.driftFactor >= 1:
		m.refuse("WithDriftFactor(%v): must be from 0 to below 1", m.driftFactor)
		return
	}
	timeout := time.Duration(m.timeoutFactor * float64(ttl))
	m.opts = []quorate.LockOption{
		quorate.WithTTL(ttl), quorate.WithoutRenewal(), quorate.WithLinger(0),
		quorate.WithNodeTimeout(max(time.Millisecond, min(timeout, ttl/4))),
	}
	if !m.suits() { // for so long a lease the guard time is too short
		m.opts, m.renewed = []quorate.LockOption{quorate.WithLinger(0)}, true
	}
}

// suits reports whether the quorum can serve claims with m's options.
func (m *Mutex) suits() (ok bool) {
	defer func() { ok = recover() == nil }()
	mutex.New(m.q, m.name, m.opts...)
	return
}

func (m *Mutex) refuse(format string, args ...any) {
	m.refused = fmt.Errorf("quorate: redsync: %w: "+format, append([]any{quorate.ErrInvalid}, args...)...)
}

// An Option configures a mutex.
type Option interface {
	Apply(*Mutex)
}

// OptionFunc is a function that configures a mutex.
type OptionFunc func(*Mutex)

// Apply calls f(mutex).
func (f OptionFunc) Apply(mutex *Mutex) {
	f(mutex)
}

// A DelayFunc returns how long redsync would sleep before a try.
type DelayFunc func(tries int) time.Duration

// WithExpiry sets how long a hold lasts unless it is extended. The default is 8
// s. The expiry becomes the TTL of the lease if the nodes' guard time allows it
// (see [quorate.WithGuard]). Otherwise the lease has the TTL of the quorum and
// is renewed until the expiry; in that case [Mutex.Until] moves forward with
// each renewal.
func WithExpiry(expiry time.Duration) Option {
	return OptionFunc(func(m *Mutex) { m.expiry = expiry })
}

// WithTries sets how long Lock waits for its turn: as long as redsync would
// wait between that many tries. The default is 32. With 1, Lock does not wait.
func WithTries(tries int) Option {
	return OptionFunc(func(m *Mutex) { m.tries = tries })
}

// WithRetryDelay sets the delay between two tries; see [WithTries]. The default
// is between 50 and 250 ms. A claim does not really retry: it waits in a queue.
func WithRetryDelay(delay time.Duration) Option {
	return WithRetryDelayFunc(func(int) time.Duration { return delay })
}

// WithRetryDelayFunc is like [WithRetryDelay], but takes a function. Lock calls
// it before it waits: once for each try but the first, at most 1,000 times.
func WithRetryDelayFunc(delayFunc DelayFunc) Option {
	return OptionFunc(func(m *Mutex) { m.delayFunc = delayFunc })
}

// WithSetNXOnExtend is refused: a hold that has ended cannot be revived.
func WithSetNXOnExtend() Option {
	return OptionFunc(func(m *Mutex) {
		m.refuse("WithSetNXOnExtend: a lost hold cannot be recovered; remove the option, and lock again after a loss")
	})
}

// WithDriftFactor sets how much earlier than the expiry [Mutex.Until] is, as a
// fraction of the expiry. The default is 0.01. In this package, Until is always
// at least 3% plus 2 ms earlier.
func WithDriftFactor(factor float64) Option {
	return OptionFunc(func(m *Mutex) { m.driftFactor = factor })
}

// WithTimeoutFactor sets how long to wait for a node, as a fraction of the
// expiry. The default is 0.05, and the maximum is 0.25. If the lease has the
// TTL of the quorum, it also has the node timeout of the quorum; see
// [WithExpiry].
func WithTimeoutFactor(factor float64) Option {
	return OptionFunc(func(m *Mutex) { m.timeoutFactor = factor })
}

// WithGenValueFunc is refused: claims are identified by a ticket, not by a
// value that the caller chooses.
func WithGenValueFunc(genValueFunc func() (string, error)) Option {
	return OptionFunc(func(m *Mutex) {
		m.refuse("WithGenValueFunc: values are not stored; label the process with quorate.WithOwner")
	})
}

// WithValue is refused: a hold belongs to the Mutex that locked it, and cannot
// be unlocked from elsewhere.
func WithValue(v string) Option {
	return OptionFunc(func(m *Mutex) {
		m.refuse("WithValue: another process cannot unlock or extend a hold; pass the Mutex on, or let the hold expire")
	})
}

// WithFailFast has no effect: no call waits for a node that it does not need.
func WithFailFast(b bool) Option { return none }

// WithShufflePools has no effect: the nodes are asked in parallel.
func WithShufflePools(b bool) Option { return none }

var none = OptionFunc(func(*Mutex) {})

var (
	// ErrFailed means that the lock was not acquired.
	ErrFailed = errors.New("redsync: failed to acquire lock")
	// ErrExtendFailed means that the hold was not extended.
	ErrExtendFailed = errors.New("redsync: failed to extend lock")
	// ErrLockAlreadyExpired means that the hold ended before it was unlocked.
	ErrLockAlreadyExpired = errors.New("redsync: failed to unlock, lock was already expired")
)

// ErrTaken means that another claim holds the name or is ahead in the queue.
// Nodes is not set, because nodes are identified by their addresses here.
type ErrTaken struct {
	Nodes []int
}

// Error returns "lock already taken".
func (err ErrTaken) Error() string { return "lock already taken" }

// ErrNodeTaken exists only so that existing code compiles. No call returns it.
type ErrNodeTaken struct {
	Node int
}

// Error returns a message with the node's number.
func (err ErrNodeTaken) Error() string { return fmt.Sprintf("node #%d: lock already taken", err.Node) }

// A RedisError is one node's error.
type RedisError struct {
	Node int // always -1: Err has the node's address
	Err  error
}

// Error returns the message of Err.
func (e RedisError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e RedisError) Unwrap() error {
	return e.Err
}

// failure is an error of the library that also matches redsync's errors.
type failure struct {
	error
	as []error
}

func (f *failure) Unwrap() []error { return append(f.as, f.error) }

// like has an error of the library match some of redsync: those given, and
// those that say what was in the way. What no repetition can mend is left as it
// is.
func like(err error, kinds ...error) error {
	if errors.Is(err, quorate.ErrInvalid) || errors.Is(err, quorate.ErrClosed) {
		return err
	}
	f := &failure{error: err, as: kinds}
	if errors.Is(err, quorate.ErrHeld) {
		f.as = append(f.as, &ErrTaken{})
	}
	if e, ok := errors.AsType[*quorate.Error](err); ok && errors.Is(err, quorate.ErrNoQuorum) {
		for _, n := range e.Nodes {
			f.as = append(f.as, &RedisError{Node: -1, Err: fmt.Errorf("%s: %w", n.Node, n.Err)})
		}
	}
	return f
}
