package redsync

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// A Mutex is a lock on a majority of the nodes. Each call of Lock is a separate
// claim: a second call on the same value waits for the hold to end, just as a
// call in another process would. It is safe for concurrent use.
type Mutex struct {
	q       *quorate.Quorum
	name    string
	opts    []quorate.LockOption
	renewed bool  // the lease has the quorum's TTL, and is renewed until the expiry
	refused error // why no claim can be made

	expiry        time.Duration
	tries         int
	delayFunc     DelayFunc
	driftFactor   float64
	timeoutFactor float64

	mu   sync.Mutex
	hold *hold // the last one that was not unlocked; nil: none
}

// hold is one hold of a Mutex. The Mutex's mu guards until and over.
type hold struct {
	m       *mutex.Mutex
	lease   quorate.Lease
	until   time.Time // when it expires
	over    bool      // it has expired, and m is unlocked
	expires *time.Timer
}

// Name returns the name of the mutex.
func (m *Mutex) Name() string {
	return m.name
}

// Value returns the fencing token of the hold in decimal digits. The token
// increases with every holder of the name. Value returns "" if the mutex is not
// locked.
func (m *Mutex) Value() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hold == nil {
		return ""
	}
	return strconv.FormatUint(m.hold.lease.Token(), 10)
}

// Until returns the time until which the hold is valid, or the zero time if the
// mutex is not locked. It does not contact the nodes.
func (m *Mutex) Until() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch h := m.hold; {
	case h == nil:
		return time.Time{}
	case h.lease.ValidUntil().Before(h.until):
		return h.lease.ValidUntil()
	default:
		return h.until
	}
}

// TryLock tries to lock m once.
func (m *Mutex) TryLock() error {
	return m.TryLockContext(context.Background())
}

// TryLockContext tries to lock m once. It returns the same errors as
// [Mutex.LockContext].
func (m *Mutex) TryLockContext(ctx context.Context) error {
	return m.lock(ctx, 1)
}

// Lock locks m; see [Mutex.LockContext].
func (m *Mutex) Lock() error {
	return m.LockContext(context.Background())
}

// LockContext locks m. It waits in the queue for as long as redsync would keep
// trying; see [WithTries]. Its error matches [ErrFailed] and an error of
// package quorate. The error also matches *[ErrTaken] if another claim was in
// the way, or a *[RedisError] for each node that did not answer if too many did
// not.
func (m *Mutex) LockContext(ctx context.Context) error {
	return m.lock(ctx, m.tries)
}

func (m *Mutex) lock(ctx context.Context, tries int) error {
	if ctx == nil {
		ctx = context.Background()
	}
	switch {
	case m.refused != nil:
		return m.refused
	case tries < 1:
		return ErrFailed
	}
	h := &hold{m: mutex.New(m.q, m.name, m.opts...)}
	if wait := m.wait(tries); wait > 0 {
		within, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		if err := h.m.LockContext(within); err != nil {
			return like(err, ErrFailed)
		}
	} else if err := h.m.TryLockContext(ctx); err != nil {
		return like(err, ErrFailed)
	}
	h.lease = h.m.Lease()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold = h
	m.validFrom(h, time.Now())
	return nil
}

// wait is the sum of the delays between so many tries.
func (m *Mutex) wait(tries int) (sum time.Duration) {
	const most = 24 * time.Hour
	delays := tries - 1
	asked := min(delays, 1000)
	for i := range asked {
		if sum += max(0, m.delayFunc(i+1)); sum >= most {
			return most
		}
	}
	if asked < delays { // those that are left are as long as the others
		sum = time.Duration(min(float64(most), float64(sum)/float64(asked)*float64(delays)))
	}
	return sum
}

// validFrom has h expire. The caller has m.mu.
func (m *Mutex) validFrom(h *hold, start time.Time) {
	h.until = start.Add(time.Duration(float64(m.expiry) * (1 - m.driftFactor)))
	switch {
	case !m.renewed: // the lease ends by itself
	case h.expires == nil:
		h.expires = time.AfterFunc(time.Until(h.until), func() { m.expire(h) })
	default:
		h.expires.Reset(time.Until(h.until))
	}
}

// expire ends a hold whose lease would be renewed further.
func (m *Mutex) expire(h *hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !h.over && !time.Now().Before(h.until) {
		h.over = true
		h.m.Unlock()
	}
}

// Unlock unlocks m; see [Mutex.UnlockContext].
func (m *Mutex) Unlock() (bool, error) {
	return m.UnlockContext(context.Background())
}

// UnlockContext unlocks m and reports whether a majority of the nodes has
// confirmed that. If not, it returns the reason: [ErrLockAlreadyExpired] if the
// hold had already ended or there was none, or a *[RedisError] for each node
// that did not answer. The lock is released anyway: on those nodes it ends when
// they come back or when the lease expires.
func (m *Mutex) UnlockContext(ctx context.Context) (bool, error) {
	if m.refused != nil {
		return false, m.refused
	}
	m.mu.Lock()
	h := m.hold
	m.hold = nil
	ended := h == nil || h.over
	if !ended {
		h.over = true
		if h.expires != nil {
			h.expires.Stop()
		}
	}
	m.mu.Unlock()
	if ended {
		return false, like(quorate.ErrNotHeld, ErrLockAlreadyExpired)
	}
	switch err := h.m.UnlockContext(orBackground(ctx)); {
	case errors.Is(err, quorate.ErrLost):
		return false, like(err, ErrLockAlreadyExpired)
	case err != nil:
		return false, like(err)
	}
	return true, nil
}

// Extend renews the hold; see [Mutex.ExtendContext].
func (m *Mutex) Extend() (bool, error) {
	return m.ExtendContext(context.Background())
}

// ExtendContext extends the hold by another expiry from now. It reports whether
// a majority of the nodes has agreed. If not, it returns an error that matches
// [ErrExtendFailed]. A hold that has ended cannot be extended.
func (m *Mutex) ExtendContext(ctx context.Context) (bool, error) {
	if m.refused != nil {
		return false, m.refused
	}
	m.mu.Lock()
	h := m.hold
	ended := h == nil || h.over
	m.mu.Unlock()
	if ended {
		return false, like(quorate.ErrNotHeld, ErrExtendFailed)
	}
	start := time.Now()
	if err := h.m.Extend(orBackground(ctx)); err != nil {
		return false, like(err, ErrExtendFailed)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.over { // meanwhile
		return false, like(quorate.ErrNotHeld, ErrExtendFailed)
	}
	m.validFrom(h, start)
	return true, nil
}

// Valid reports whether m is locked; see [Mutex.ValidContext].
func (m *Mutex) Valid() (bool, error) {
	return m.ValidContext(context.Background())
}

// ValidContext reports whether m is locked and its hold has not ended. The
// error says how it ended. ValidContext does not contact the nodes: by the time
// a hold is lost on the nodes, it has already ended here.
func (m *Mutex) ValidContext(context.Context) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch h := m.hold; {
	case h == nil:
		return false, quorate.ErrNotHeld
	case h.over || !time.Now().Before(h.until):
		return false, quorate.ErrLost
	case h.lease.Context().Err() != nil:
		return false, context.Cause(h.lease.Context())
	}
	return true, nil
}

func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
