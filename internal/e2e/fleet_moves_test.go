//go:build linux

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

var movers = flag.Int("movers", 200, "processes of TestFleetMoves")

func init() { modes["move"] = move }

// ledger is the file of TestFleetMoves, which each holder reads and writes.
type ledger struct {
	Turns  map[string]int    // by the sets that the holders used
	Tokens map[string]uint64 // the highest of each set
}

// move is what a worker does on "move FILE": it takes the name again and again,
// and keeps the ledger meanwhile. A line of its input is the sets to use from
// now on: with one it uses a Mutex, with two it uses Both. A set is a list of
// URLs. As a process that is to be restarted, it ends the turn that it has and
// waits for no other. It answers "at LINE" when it uses nothing else any more,
// and says what is wrong:
//
//	overlap  another process has the ledger
//	fell     a token is not above that of an earlier holder
//	late     the hold had ended before its turn did
func move(_ *quorate.Quorum, name string, args []string) error {
	lines, told := make(chan string, 1), make(chan context.CancelFunc, 1)
	go func() {
		for stop := context.CancelFunc(func() {}); ; stop = <-told {
			line := "" // the test has ended
			if commands.Scan() {
				line = commands.Text()
			}
			stop()
			lines <- line
		}
	}()
	open := map[string]*quorate.Quorum{}
	for {
		line := <-lines
		if line == "" {
			return nil
		}
		sets := strings.Fields(line)
		var err error
		if open, err = reopen(open, sets); err != nil {
			return err
		}
		ctx, stop := context.WithCancel(context.Background())
		told <- stop
		turn := taker(open, name, sets, args[0])
		for fmt.Println("at", line); ctx.Err() == nil; {
			if err := turn(ctx); err != nil && !errors.Is(err, context.Canceled) {
				fmt.Println(err)
			}
		}
	}
}

// reopen connects to the sets, and closes what is open of others.
func reopen(open map[string]*quorate.Quorum, sets []string) (used map[string]*quorate.Quorum, err error) {
	used = map[string]*quorate.Quorum{}
	for _, set := range sets {
		if used[set] = open[set]; used[set] == nil {
			if used[set], err = quorate.Connect(context.Background(), strings.Split(set, ","), e2e.Timing(moverTTL),
				quorate.WithLogger(nil)); err != nil {
				return nil, err
			}
		}
		delete(open, set)
	}
	for _, q := range open {
		err = errors.Join(err, q.Close())
	}
	return used, err
}

// taker returns what takes one turn on one set, or on two.
func taker(open map[string]*quorate.Quorum, name string, sets []string,
	file string) func(context.Context) error {
	if len(sets) == 1 {
		m := mutex.New(open[sets[0]], name)
		return func(ctx context.Context) error {
			return m.Do(ctx, func(context.Context) error { return enter(file, sets, []quorate.Lease{m.Lease()}) })
		}
	}
	g := mutex.Both(open[sets[0]], open[sets[1]], name)
	return func(ctx context.Context) error {
		return g.Do(ctx, func(context.Context) error { return enter(file, sets, g.Leases()) })
	}
}

// enter notes a turn in the ledger. The kernel's lock of the file is not waited
// for: it tells that another process is inside.
func enter(file string, sets []string, leases []quorate.Lease) (wrong error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // which unlocks it
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return errors.New("overlap")
	}
	var l ledger
	if err := json.NewDecoder(f).Decode(&l); err != nil {
		return err
	}
	for i, set := range sets {
		if token := leases[i].Token(); token > l.Tokens[set] {
			l.Tokens[set] = token
		} else {
			wrong = errors.New("fell")
		}
	}
	l.Turns[strings.Join(sets, " ")]++
	text, _ := json.Marshal(l)
	if _, err := f.WriteAt(append(text, '\n'), 0); err != nil { // it only grows
		return err
	}
	for _, lease := range leases {
		if lease.Context().Err() != nil {
			wrong = errors.New("late")
		}
	}
	return wrong
}

// moverTTL is long enough for a process that gets no processor for a while.
const moverTTL = 8 * time.Second

// moving is a fleet that moves.
type moving struct {
	workers []*process
	file    string
	answers chan string // of all
	wrong   map[string]int
}

// use tells workers which sets to use, and returns when they use nothing else.
func (f *moving) use(t *testing.T, workers []*process, sets string) {
	t.Helper()
	for _, w := range workers {
		w.tell(t, sets)
	}
	for left := len(workers); left > 0; {
		if line := e2e.ReceiveWithin(t, 3*e2e.Patience, f.answers); line == "at "+sets {
			left--
		} else {
			f.wrong[line]++
		}
	}
}

// turns returns how many turns were taken with which sets.
func (f *moving) turns() (turns map[string]int) {
	for {
		var l ledger
		if text, err := os.ReadFile(f.file); err == nil && json.Unmarshal(text, &l) == nil {
			return l.Turns
		}
	}
}

// mix waits until turns were taken with either choice of sets.
func (f *moving) mix(t *testing.T, choices ...string) {
	t.Helper()
	before := f.turns()
	require.True(t, e2e.EventuallyWithin(3*e2e.Patience, func() bool {
		now := f.turns()
		return !slices.ContainsFunc(choices, func(sets string) bool { return now[sets] < before[sets]+5 })
	}), "%v: %v, now %v", choices, before, f.turns())
}

// Two hundred processes move from one server to three masters, to a Redis
// Cluster, and back, while all of them want one name. At each step one half
// goes first. A file that the kernel locks tells that no two are inside, and
// that the tokens of each set rise. In the end some skip a step: then two are
// inside, so the file does tell.
func TestFleetMoves(t *testing.T) {
	one, three, cluster := redistest.Start(t, 1), redistest.Start(t, 3), redistest.StartSharded(t, 3, false)
	a, b, c := one.URLs()[0], strings.Join(three.URLs(), ","), cluster.URL()
	for _, set := range []string{a, b, c} {
		require.NoError(t, declare(t, strings.Split(set, ",")))
	}
	f := &moving{file: filepath.Join(t.TempDir(), "ledger"),
		answers: make(chan string, 100**movers), wrong: map[string]int{}}
	require.NoError(t, os.WriteFile(f.file, []byte(`{"Turns":{},"Tokens":{}}`), 0o600))
	began := time.Now()
	for range *movers {
		w := startWorkerAt(t, one.URLs(), terms{Name: "m", TTL: moverTTL, Guard: 2*moverTTL + 20*time.Millisecond})
		f.workers = append(f.workers, w)
		go func() {
			for line := range w.lines {
				f.answers <- line
			}
		}()
		w.tell(t, "move "+f.file)
	}
	steps := []string{a, a + " " + b, b, b + " " + c, c, c + " " + b, b, b + " " + a, a}
	f.use(t, f.workers, steps[0])
	for i, sets := range steps[1:] {
		rand.Shuffle(len(f.workers), func(i, j int) { f.workers[i], f.workers[j] = f.workers[j], f.workers[i] })
		f.use(t, f.workers[:len(f.workers)/2], sets)
		f.mix(t, steps[i], sets)
		f.use(t, f.workers[len(f.workers)/2:], sets)
		f.mix(t, sets)
	}
	t.Logf("%d processes took %v: %v", *movers, time.Since(began).Round(time.Millisecond),
		slices.Sorted(maps.Values(f.turns())))
	assert.Empty(t, f.wrong)

	f.use(t, f.workers[:len(f.workers)/2], c)
	for line := ""; line != "overlap"; {
		line = e2e.Receive(t, f.answers)
	}
}

// declare declares the nodes of a set brand-new.
func declare(t *testing.T, urls []string) error {
	q, err := quorate.Connect(t.Context(), urls, e2e.Timing(moverTTL), quorate.WithLogger(nil))
	if err != nil {
		return err
	}
	return errors.Join(q.Bootstrap(deadline(t)), q.Close())
}
