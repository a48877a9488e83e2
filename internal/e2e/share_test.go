package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/judge"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

var shareFor = flag.Duration("share", 3*time.Second,
	"how long readers and writers, and users of permits, are at it")

// use is a time in which a worker held something, as it saw it itself: from
// after the lock to before the unlock.
type use struct {
	from, to int64 // wall clock of this machine, in nanoseconds
	waited   int64
	weight   int64
	token    uint64
	write    bool
	lost     bool // its lease ended before it gave it back: the times say nothing
	torn     bool // it read what a writer without a lease was writing
}

func (u use) String() string {
	return fmt.Sprintf("use %d %d %d %d %d %t %t %t", u.from, u.to, u.waited, u.weight,
		u.token, u.write, u.lost, u.torn)
}

// share is what a worker does when told "share KIND FOR FILE": five goroutines
// read and write, or use permits, until the time is over.
func share(q *quorate.Quorum, name, kind, lasts, file string) error {
	d, err := time.ParseDuration(lasts)
	if err != nil {
		return err
	}
	end := time.Now().Add(d)
	one := permits(semaphore.NewWeighted(q, name, permitsInAll), kind == "weights")
	if kind == "file" {
		one = readOrWrite(rwmutex.New(q, name), file)
	}
	var wg sync.WaitGroup
	errs := make(chan error, 5)
	var out sync.Mutex
	for range 5 {
		wg.Go(func() {
			for time.Now().Before(end) {
				u, err := one()
				switch {
				case errors.Is(err, quorate.ErrLost):
					u.lost, err = true, nil
				case errors.Is(err, errTorn):
					u.torn, err = true, nil
				}
				if err != nil {
					errs <- err
					return
				}
				out.Lock()
				fmt.Println(u)
				out.Unlock()
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// readOrWrite reads the file, or one time in eight writes it in two halves.
func readOrWrite(m *rwmutex.RWMutex, file string) func() (use, error) {
	return func() (u use, err error) {
		asked := time.Now()
		u.weight = 1
		var lease quorate.Lease
		if u.write = rand.IntN(8) == 0; u.write {
			m.Lock()
			defer m.Unlock()
			lease = m.Lease()
		} else {
			m.RLock()
			defer m.RUnlock()
			lease = m.RLease()
		}
		u.from, u.waited, u.token = time.Now().UnixNano(), int64(time.Since(asked)), lease.Token()
		if u.write {
			err = tear(file)
		} else {
			err = untorn(file)
		}
		u.to = time.Now().UnixNano()
		if cause := context.Cause(lease.Context()); cause != nil {
			return u, fmt.Errorf("while it was at work: %w", cause)
		}
		return u, err
	}
}

// tear writes a text and, after a moment, the sum that belongs to it.
func tear(file string) error {
	text := fmt.Sprintf("%0512d", rand.Uint64())
	sum := sha256.Sum256([]byte(text))
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	time.Sleep(time.Millisecond)
	_, err = f.WriteString(hex.EncodeToString(sum[:]))
	return err
}

var errTorn = errors.New("a torn write")

// untorn fails when text and sum do not belong together.
func untorn(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	time.Sleep(time.Millisecond)
	if len(b) < 512 {
		return fmt.Errorf("%w: %d bytes", errTorn, len(b))
	}
	sum := sha256.Sum256(b[:512])
	if string(b[512:]) != hex.EncodeToString(sum[:]) {
		return fmt.Errorf("%w: the sum is not that of the text", errTorn)
	}
	return nil
}

// Eight processes share, on three and five servers of which one is killed in
// the middle and started again without its memory. What they held, and when,
// is put together from outside.
func TestShare(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		for _, kind := range []string{"file", "permits", "weights"} {
			t.Run(fmt.Sprintf("%s on %d servers", kind, nodes), func(t *testing.T) {
				uses, quiet := shared(t, kind, nodes)
				if kind == "file" {
					judgeFile(t, uses)
					return
				}
				judgeNumber(t, uses)
				judgeOrder(t, uses)
				if kind == "permits" {
					judgeDemand(t, uses, quiet)
				}
			})
		}
	}
}

// span is a time, by the wall clock in nanoseconds.
type span struct{ from, to int64 }

// shared lets the workers loose and returns all that they held, and the times
// in which all of them wanted to and there was no fault.
func shared(t *testing.T, kind string, nodes int) (uses []use, quiet []span) {
	const ttl, guard = time.Second, 2*time.Second + 20*time.Millisecond
	c := redistest.Start(t, nodes)
	e2e.Open(t, c, e2e.Timing(ttl))
	file := filepath.Join(t.TempDir(), "shared")
	require.NoError(t, tear(file))
	var workers []*process
	for range processes {
		workers = append(workers, startWorker(t, c, terms{Name: kind, TTL: ttl, Guard: guard}))
	}
	for _, w := range workers {
		w.tell(t, fmt.Sprintf("share %s %v %s", kind, *shareFor, file))
	}
	late := lateness.Measure(t)
	for i := range nodes {
		late.Watch(t, func(ctx context.Context) error { return c.Node(i).Client().Ping(ctx).Err() })
	}
	began := time.Now()
	fault := make(chan span, 1)
	middle := time.AfterFunc(*shareFor/3, func() {
		killed := time.Now()
		_ = c.Node(0).Kill()
		_ = c.Node(0).Restart()
		// It votes again after the guard time, and knows all claims once all
		// have renewed.
		fault <- span{killed.UnixNano(), time.Now().Add(guard + ttl).UnixNano()}
	})
	defer middle.Stop()
	var bad []use
	for _, w := range workers {
		for over := time.After(*shareFor + e2e.Patience); ; {
			var line string
			select {
			case line = <-w.lines:
			case <-over:
				require.FailNow(t, "a waiter waits forever")
			}
			if line == "done" {
				break
			}
			var u use
			_, err := fmt.Sscanf(strings.TrimPrefix(line, "use "), "%d %d %d %d %d %t %t %t", &u.from, &u.to,
				&u.waited, &u.weight, &u.token, &u.write, &u.lost, &u.torn)
			require.NoError(t, err, line)
			// A writer that loses its lease while it stands still writes on: nothing
			// fences a file.
			if u.lost || u.torn {
				bad = append(bad, u)
				continue
			}
			uses = append(uses, u)
		}
	}
	for _, u := range bad {
		to := time.Unix(0, u.to)
		still := max(late.Most(), late.Within(to.Add(-2*ttl), to)) // a hold is lost after several short pauses, too
		require.Greater(t, still, ttl/4, "%s, though the machine did not stand still", u)
	}
	require.Greater(t, len(uses), 50, "too little was done to show anything")
	e2e.Clean(t, c)
	f, end := <-fault, began.Add(*shareFor).UnixNano()
	quiet = []span{{began.UnixNano(), f.from}}
	if f.to < end {
		quiet = append(quiet, span{f.to, end})
	}
	if late.Most() > *shareFor/10 {
		quiet = nil // a machine that stands still is a fault, too
	}
	return uses, quiet
}

// holds are what the judge of the test kit reads. A writer takes all of what
// readers share.
func holds(uses []use) (all []judge.Hold[use]) {
	for _, u := range uses {
		weight := u.weight
		if u.write {
			weight = processes * each
		}
		all = append(all, judge.Hold[use]{Of: u, From: u.from, To: u.to, Weight: weight, Token: u.token})
	}
	return all
}

// longestWait returns the time that the most patient of the uses has waited.
func longestWait(uses []use) time.Duration {
	longest := int64(0)
	for _, u := range uses {
		longest = max(longest, u.waited)
	}
	return time.Duration(longest).Round(time.Millisecond)
}

// only returns the uses for which is holds.
func only(uses []use, is func(use) bool) []use {
	return slices.DeleteFunc(slices.Clone(uses), func(u use) bool { return !is(u) })
}

// judgeFile: a writer holds the file alone, and readers hold it together.
func judgeFile(t *testing.T, uses []use) {
	require.Empty(t, judge.Overlaps(holds(uses), processes*each))
	writes := only(uses, func(u use) bool { return u.write })
	reads := only(uses, func(u use) bool { return !u.write })
	require.NotEmpty(t, writes)
	most, _ := judge.Peak(holds(reads))
	require.Greater(t, most, int64(1), "readers run together")
	t.Logf("%d reads, %d writes; up to %d readers at once; a writer waited up to %v", len(reads),
		len(writes), most, longestWait(writes))
}
