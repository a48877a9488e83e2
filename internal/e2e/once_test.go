package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/once"
)

var rounds = flag.Int("rounds", 10, "of TestOnceFleet")

// replicas is how many processes call once in each round.
const replicas = 16

func init() { modes["once"] = migrate }

// migrate is what a worker does on "once NAME LEDGER": a migration that must be
// done once. It notes its beginning and, after the command to go on, its end in
// the ledger, with the token, and tells both:
//
//	called NS
//	begin TOKEN NS
//	end TOKEN NS
//	returned NS
//
// When it has lost its claim it calls again, as a replica does that is started
// again.
func migrate(q *quorate.Quorum, _ string, args []string) error {
	name, ledger := args[0], args[1]
	note := func(what string, token uint64) error {
		f, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		_, err = fmt.Fprintln(f, what, token)
		fmt.Println(what, token, time.Now().UnixNano())
		return err
	}
	o := once.New(q, name)
	fmt.Println("called", time.Now().UnixNano())
	for {
		err := o.DoContext(context.Background(), func(ctx context.Context) error {
			token := once.Lease(ctx).Token()
			if err := note("begin", token); err != nil {
				return err
			}
			for commands.Scan() && commands.Text() != fmt.Sprint("go ", token) {
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return note("end", token)
		})
		if !errors.Is(err, quorate.ErrLost) {
			fmt.Println("returned", time.Now().UnixNano())
			return err
		}
		fmt.Println("lost", time.Now().UnixNano())
	}
}

// migrators are the processes that migrate.
type migrators struct {
	c       *redistest.Cluster
	tm      terms
	dice    *rand.Rand
	workers map[*process]bool
	said    chan said

	inside, after, again, losses, restarts int
	longest                                time.Duration // wait of any process while no migration ran
}

// said is a line of a worker, or that it has died.
type said struct {
	by   *process
	line string
}

// startWorkers completes the number.
func (f *migrators) startWorkers(t *testing.T) {
	t.Helper()
	for len(f.workers) < replicas {
		w := startWorker(t, f.c, f.tm)
		f.workers[w] = true
		go func() {
			for line := range w.lines {
				f.said <- said{w, line}
			}
			f.said <- said{w, "died"}
		}()
	}
}

// kill ends one of them, as kill -9 does.
func (f *migrators) kill(t *testing.T, w *process) {
	t.Helper()
	delete(f.workers, w)
	w.kill(t)
}

// Every replica of a service migrates the database as it starts: sixteen
// processes, again and again. The migrating process is killed at random points,
// and one server of the three is restarted empty now and then. The migration is
// completed once, all return, and no process waits longer than a lease while no
// migration runs.
//
// Completed is what has been recorded. A process that is killed between the
// end of its migration and its being recorded has not completed it, and no
// other process can tell: the next one migrates again. So most are killed
// before the end, where exactly one end may be in the ledger; for each that is
// killed about the end, or has lost its claim there, one more may be, under a
// token that is not the recorded one.
func TestOnceFleet(t *testing.T) {
	const ttl = time.Second
	c := redistest.Start(t, 3)
	guard := 2*ttl + 20*time.Millisecond
	q := e2e.Open(t, c, e2e.Guarded(ttl, guard))
	seed := rand.Uint64()
	f := &migrators{
		c: c, tm: terms{Name: "unused", TTL: ttl, Guard: guard}, dice: rand.New(rand.NewPCG(seed, 0)),
		workers: map[*process]bool{}, said: make(chan said, 100*replicas),
	}
	dir := t.TempDir()
	late := lateness.Measure(t)
	began := time.Now()
	for i := range *rounds {
		f.startWorkers(t)
		name := fmt.Sprintf("migration-%d", i)
		before := f.after + f.losses
		f.round(t, name, filepath.Join(dir, name), i%5 == 4)
		f.audit(t, once.New(q, name), filepath.Join(dir, name), f.after+f.losses-before)
		require.False(t, t.Failed(), "round %d, seed %d", i, seed)
	}
	t.Logf("%d rounds of %d processes in %v; killed %d inside and %d about the end, after which %d migrated "+
		"again; %d lost their claim; %d servers restarted empty; longest wait with no migration at work %v, the "+
		"lease being %v",
		*rounds, replicas, time.Since(began).Round(time.Second), f.inside, f.after, f.again, f.losses, f.restarts,
		f.longest.Round(time.Millisecond), ttl)
	assert.Less(t, f.longest, 3*ttl+late.Allow(2),
		"a lease, and as much again, twice, for a machine that has other things to do; a lease and a guard time are longer")
}

// round lets all of them call, and goes on until all have returned.
func (f *migrators) round(t *testing.T, name, ledger string, restart bool) {
	for w := range f.workers {
		w.tell(t, "once "+name+" "+ledger)
	}
	var idle time.Time   // since when no migration runs; zero: one runs
	var at time.Time     // what was said is of that time
	var work *time.Timer // until the next thing happens to the migrating process
	var then func()
	expired := func() <-chan time.Time {
		if work == nil {
			return nil
		}
		return work.C
	}
	began, forgot := time.Now(), false
	waited := func(until string) {
		if idle.IsZero() {
			return
		}
		wait := at.Sub(idle)
		f.longest = max(f.longest, wait)
		if wait > f.tm.TTL {
			t.Logf("%s: %v until a process %s, %v after it began; restart: %v", name, wait, until, at.Sub(began), forgot)
		}
	}
	soon := func(most time.Duration, do func()) {
		work, then = time.NewTimer(time.Duration(f.dice.Int64N(int64(most)))), do
	}
	returned := map[*process]bool{}
	deadline := time.After(2 * e2e.Patience)
	for len(returned) < len(f.workers) {
		select {
		case <-deadline:
			require.FailNow(t, "not all have returned", "%s: %d of %d", name, len(returned), len(f.workers))
		case <-expired():
			work = nil
			then()
		case s := <-f.said:
			if !f.workers[s.by] {
				continue // it has been killed
			}
			words := strings.Fields(s.line)
			var ns int64
			_, _ = fmt.Sscan(words[len(words)-1], &ns)
			at = time.Unix(0, ns)
			switch words[0] {
			case "called":
				if idle.IsZero() && work == nil {
					idle = at
				}
			case "begin":
				waited("begins")
				idle = time.Time{}
				soon(60*time.Millisecond, func() { f.fate(t, s.by, words[1], soon, &idle) })
				if restart {
					restart, forgot = false, true
					f.forget(t)
				}
			case "end":
				idle = at
			case "lost":
				f.losses++
				idle = at
			case "returned":
				waited("returns")
				returned[s.by] = true
			default:
				require.FailNow(t, "a worker has failed", s.line)
			}
		}
	}
}

// fate decides what becomes of the one that is at work: it is killed, or told
// to go on, or told to go on and killed about the end.
func (f *migrators) fate(t *testing.T, w *process, token string,
	soon func(time.Duration, func()), idle *time.Time) {
	killed := func() {
		f.kill(t, w)
		*idle = time.Now()
	}
	switch f.dice.IntN(6) {
	case 0, 1:
		f.inside++
		killed()
		return
	case 2:
		f.after++
		soon(6*time.Millisecond, killed)
	}
	w.tell(t, "go "+token)
}

// forget restarts one server without its memory, when all others have theirs.
func (f *migrators) forget(t *testing.T) {
	t.Helper()
	for i := range f.c.Len() {
		require.True(t, e2e.Eventually(func() bool {
			marker, err := f.c.Node(i).Client().Get(t.Context(), e2e.MarkerKey(t.Context(), f.c.Node(i))).Result()
			return err == nil && strings.HasSuffix(marker, " w")
		}), "server %d is caught up", i)
	}
	f.restarts++
	require.NoError(t, f.c.Node(f.dice.IntN(f.c.Len())).Restart())
}

// audit holds the ledger to what is recorded. So many ends may have remained
// unrecorded.
func (f *migrators) audit(t *testing.T, o *once.Once, ledger string, unrecorded int) {
	var s once.Status
	var err error
	require.True(t, e2e.Eventually(func() bool {
		s, err = o.Status(t.Context())
		return err == nil
	}), err)
	require.Equal(t, once.Done, s.State)
	text, err := os.ReadFile(ledger)
	require.NoError(t, err)
	tokens := map[string][]uint64{}
	for line := range strings.Lines(string(text)) {
		var what string
		var token uint64
		_, err := fmt.Sscan(line, &what, &token)
		require.NoError(t, err, line)
		tokens[what] = append(tokens[what], token)
	}
	begins, ends := tokens["begin"], tokens["end"]
	assert.True(t, slices.IsSorted(begins) && len(slices.Compact(slices.Clone(begins))) == len(begins),
		"tokens rise:\n%s", text)
	assert.Equal(t, s.Token, begins[len(begins)-1], "no run begins after it was done:\n%s", text)
	assert.Equal(t, s.Token, ends[len(ends)-1], "what is recorded has ended:\n%s", text)
	assert.LessOrEqual(t, len(ends), 1+unrecorded, "it has ended more than once:\n%s", text)
	assert.Len(t, slices.Compact(slices.Clone(ends)), len(ends), "once under each token:\n%s", text)
	f.again += len(ends) - 1
}
