package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/play"
	"github.com/quorate/quorate/internal/testkit/mutant"
	"github.com/quorate/quorate/internal/trace"
)

var (
	seeds = flag.Int("seeds", defaultSeeds, "how many schedules to play")
	seed  = flag.Uint64("seed", 1, "the first schedule; with -seeds=1 its trace is printed")
	only  = flag.String("gen", "", "play this generator only")
	into  = flag.String("into", "",
		"with -seeds=1: write the schedule as a trace into this file, such as testdata/found.txt")
)

// mutation is what a mutant changes.
type mutation struct {
	rules   []string              // that are off
	setting func(*course.Setting) // nil: nothing
}

// leavesOut returns what the flag -without leaves out. Only a build with the
// tag mutants has it.
var leavesOut func(t *testing.T) mutation

// chosenMutation is what -without asks for.
func chosenMutation(t *testing.T) mutation {
	if leavesOut == nil {
		return mutation{}
	}
	return leavesOut(t)
}

// printed returns a schedule as a trace. One that shows a violation is made as
// short as the violation lets it be.
func printed(g generator, seed uint64, m mutation) (text string, v *course.Violation) {
	var x course.Tape
	restore := mutant.Off(m.rules...)
	v, _ = record(g, seed, m.setting, nil, &x)
	restore()
	head := fmt.Sprintf("# Seed %d of %s.", seed, g.name)
	lines := x.Lines
	if v != nil {
		shows := func(lines []string, c mutation) bool {
			defer mutant.Off(c.rules...)()
			return slices.ContainsFunc(trace.Output(play.BlocksOf(lines, c.setting)), func(l string) bool {
				return strings.HasPrefix(l, "VIOLATION "+v.Kind)
			})
		}
		// Of a mutant's schedule so much must stay that the rule keeps the
		// violation out.
		honest := m.setting == nil && m.rules == nil
		bad := func(lines []string) bool { return shows(lines, m) && (honest || !shows(lines, mutation{})) }
		head += fmt.Sprintf(" It shows: %v.", v)
		if bad(lines) {
			lines = play.Shrink(lines, bad)
		} else {
			head += "\n# Its commands do not show that: it is about time, or rests on what no command does."
		}
	}
	defer mutant.Off(m.rules...)()
	blocks := play.BlocksOf(lines, m.setting)
	blocks[0].Before = []string{head, ""}
	return trace.Format(blocks), v
}

// chosen is the generator of a seed.
func chosen(seed uint64) generator {
	for _, g := range generators {
		if g.name == *only {
			return g
		}
	}
	return generatorOf(seed)
}

func TestSchedules(t *testing.T) {
	m := chosenMutation(t)
	if *seeds == 1 {
		g := chosen(*seed)
		if *into != "" {
			text, _ := printed(g, *seed, m)
			if err := os.WriteFile(*into, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		fmt.Printf("seed %d, %s\n", *seed, g.name)
		defer mutant.Off(m.rules...)()
		v, stats := run(g, *seed, m.setting, os.Stdout)
		fmt.Println(stats)
		if v != nil {
			t.Fatal(v)
		}
		return
	}
	defer mutant.Off(m.rules...)()
	began := time.Now()
	var next atomic.Uint64
	var total course.Stats
	var mu sync.Mutex
	var wg sync.WaitGroup
	failures := 0
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= uint64(*seeds) {
					return
				}
				v, stats := run(chosen(*seed+i), *seed+i, m.setting, nil)
				mu.Lock()
				total.Add(stats)
				if v != nil && failures < 10 {
					failures++
					t.Errorf("seed %d (%s): %v\n\tmake sim SEEDS=1 SEED=%d", *seed+i, chosen(*seed+i).name, v, *seed+i)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	t.Logf("%v; %.0f schedules/s", total, float64(total.Schedules)/took.Seconds())
}

// The command go test takes its own flags for itself: a flag of that name would
// never get here.
func TestFlagsAreNoneOfGoTest(t *testing.T) {
	flag.VisitAll(func(f *flag.Flag) {
		if flag.Lookup("test."+f.Name) != nil {
			t.Errorf("-%s is a flag of go test", f.Name)
		}
	})
}

// The same seed plays the same schedule.
func TestDeterminism(t *testing.T) {
	for s := range uint64(12) {
		var a, b bytes.Buffer
		run(generatorOf(s), s, nil, &a)
		run(generatorOf(s), s, nil, &b)
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("seed %d plays differently the second time", s)
		}
	}
}
