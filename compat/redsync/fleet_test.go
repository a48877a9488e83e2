package redsync_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	theirs "github.com/go-redsync/redsync/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	ours "github.com/quorate/quorate/compat/redsync"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/judge"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/testkit/worker"
	"github.com/quorate/quorate/mutex"
)

// workerEnv makes this test binary a service, with its terms.
const workerEnv = "QUORATE_REDSYNC_WORKER"

// terms are what a service gets at its start.
type terms struct {
	With  string // which code it has: redsync, compat or mutex
	Addrs []string
}

func TestMain(m *testing.M) {
	var tm terms
	if ok, err := worker.Terms(workerEnv, &tm); ok {
		if err == nil {
			err = serve(tm)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	e2e.MainWithNodes(m)
}

// expiry is that of all locks: a killed service is in the way for so long.
const expiry = 2 * time.Second

// access is the one lock of all services, as one kind of code has it. Until is
// asked while it is locked.
type access struct {
	lock   func(context.Context) error
	until  func() time.Time
	unlock func() error
}

// serve takes the lock again and again until its input ends, and says when it
// certainly had it.
func serve(tm terms) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString(0) // until the parent closes it
		cancel()
	}()
	a, closeAll, err := tm.open()
	if err != nil {
		return err
	}
	defer closeAll()
	for ctx.Err() == nil {
		if err := a.lock(ctx); err != nil {
			continue // redsync's tries are over, or ctx ends
		}
		from := time.Now()
		time.Sleep(rand.N(2 * time.Millisecond))
		to, until := time.Now(), a.until()
		if until.Before(to) {
			to = until
		}
		fmt.Println(from.UnixNano(), from.UnixNano()+int64(to.Sub(from)))
		if err := a.unlock(); err != nil && time.Now().Before(until) {
			return err
		}
		// Else redsync never finds it free. On a busy machine holds
		// take longer.
		time.Sleep(rand.N(20*time.Millisecond + 10*time.Since(from)))
	}
	return nil
}

// open opens the lock.
func (tm terms) open() (access, func(), error) {
	if tm.With == "redsync" {
		rs, closeAll := open(tm.Addrs)
		return fromMutex(rs.NewMutex("invoices", theirs.WithExpiry(expiry),
			theirs.WithRetryDelay(2*time.Millisecond))), closeAll, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), e2e.Patience)
	defer cancel()
	q, err := quorate.Connect(ctx, tm.Addrs, quorate.WithTTL(expiry), quorate.WithLogger(nil))
	if err != nil {
		return access{}, nil, err
	}
	closeAll := func() { _ = q.Close() }
	if tm.With == "compat" {
		return fromMutex(ours.New(q).NewMutex("invoices", ours.WithExpiry(expiry))), closeAll, nil
	}
	m := mutex.New(q, "invoices")
	return access{
		lock:   m.LockContext,
		until:  func() time.Time { return m.Lease().ValidUntil() },
		unlock: func() error { return m.UnlockContext(context.Background()) },
	}, closeAll, nil
}

func fromMutex(m locker) access {
	return access{lock: m.LockContext, until: m.Until, unlock: func() error {
		if ok, err := m.Unlock(); !ok {
			return errors.Join(errors.New("not unlocked"), err)
		}
		return nil
	}}
}

// fleet is services under load, and what they say.
type fleet struct {
	t *testing.T

	mu    sync.Mutex
	holds []judge.Hold[string]
	since map[string]int // holds of each service since its fleet has changed
	all   map[string]*worker.Worker
}

func (f *fleet) start(of string, tm terms) {
	cmd, err := worker.Self(workerEnv, tm)
	require.NoError(f.t, err)
	w, err := worker.Start(cmd, func(line string) {
		h := judge.Hold[string]{Of: of + " with " + tm.With, Weight: 1}
		if _, err := fmt.Sscan(line, &h.From, &h.To); err != nil {
			return // it was killed as it wrote
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.holds = append(f.holds, h)
		f.since[of]++
	})
	require.NoError(f.t, err)
	f.t.Cleanup(func() { _ = w.Kill() })
	f.all[of] = w
}

// load waits until each service has had the lock some times since the last
// call.
func (f *fleet) load() {
	f.t.Helper()
	f.mu.Lock()
	clear(f.since)
	f.mu.Unlock()
	require.True(f.t, e2e.EventuallyWithin(3*e2e.Patience, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for of := range f.all {
			if f.since[of] < 15 {
				return false
			}
		}
		return true
	}), "%v", f.since)
}

func (f *fleet) overlaps() []judge.Overlap[string] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return judge.Overlaps(f.holds, 1)
}

// A fleet under load moves from redsync to compat/redsync, and from that to
// package mutex, one service at a time on the same nodes, as the guide says.
// One service dies. At no time do two have the lock.
func TestMixedFleet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	f := &fleet{t: t, since: map[string]int{}, all: map[string]*worker.Worker{}}
	services := []string{"orders", "ledger", "mail", "reports"}
	for _, of := range services {
		f.start(of, terms{"redsync", c.Addrs()})
	}
	f.load()
	e2e.Open(t, c) // which bootstraps
	f.load()
	for _, with := range []string{"compat", "mutex"} {
		for i, of := range services {
			if i == 2 {
				require.NoError(t, f.all[of].Kill())
			} else {
				require.NoError(t, f.all[of].End(e2e.Patience))
			}
			f.start(of, terms{with, c.Addrs()})
			f.load()
		}
	}
	for _, w := range f.all {
		require.NoError(t, w.End(e2e.Patience))
	}
	t.Logf("%d holds", len(f.holds))
	assert.Empty(t, f.overlaps())
	e2e.Clean(t, c)
}

// A fleet that changes its nodes along with the code: the judge sees it.
func TestMixedFleetOnOtherNodes(t *testing.T) {
	t.Parallel()
	before, after := redistest.Start(t, 3), redistest.Start(t, 3)
	e2e.Open(t, after)
	f := &fleet{t: t, since: map[string]int{}, all: map[string]*worker.Worker{}}
	f.start("orders", terms{"redsync", before.Addrs()})
	f.load()
	assert.Empty(t, f.overlaps())
	f.start("ledger", terms{"compat", after.Addrs()})
	f.start("mail", terms{"mutex", after.Addrs()})
	require.True(t, e2e.EventuallyWithin(3*e2e.Patience, func() bool { return len(f.overlaps()) > 2 }))
}
