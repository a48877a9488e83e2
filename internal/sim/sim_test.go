package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seeds = flag.Int("seeds", defaultSeeds, "how many schedules to play")
	seed  = flag.Uint64("seed", 1, "the first schedule; with -seeds=1 its trace is printed")
	only  = flag.String("gen", "", "play this generator only")
)

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
	if *seeds == 1 {
		g := chosen(*seed)
		fmt.Printf("seed %d, %s\n", *seed, g.name)
		v, stats := run(g, *seed, nil, os.Stdout)
		fmt.Println(stats)
		if v != nil {
			t.Fatal(v)
		}
		return
	}
	began := time.Now()
	var next atomic.Uint64
	var total Stats
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
				v, stats := run(chosen(*seed+i), *seed+i, nil, nil)
				mu.Lock()
				total.add(stats)
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
