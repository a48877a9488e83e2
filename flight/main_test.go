package flight_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/flight"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/testkit/worker"
)

// workerEnv makes this test binary a worker, with the nodes that it uses.
const workerEnv = "QUORATE_FLIGHT_WORKER"

func TestMain(m *testing.M) {
	var urls []string
	if ok, err := worker.Terms(workerEnv, &urls); ok {
		if err == nil {
			err = work(urls)
		}
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	e2e.MainWithNodes(m)
}

// callers is how many goroutines of a worker want one thing.
const callers = 50

// work reads what to load, and says what each of its callers got.
func work(urls []string) error {
	q, err := quorate.Connect(context.Background(), urls, quorate.WithLogger(nil))
	if err != nil {
		return err
	}
	defer q.Close()
	fmt.Println("ready")
	g := flight.New[string](q, "thing:")
	var key string
	for {
		if _, err := fmt.Scan(&key); err != nil {
			return nil // the parent has closed it
		}
		var all sync.WaitGroup
		var out sync.Mutex
		for range callers {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 2*e2e.Patience)
				defer cancel()
				v, err := g.Do(ctx, key, time.Hour, func(context.Context) (string, error) {
					out.Lock()
					fmt.Println("load", key)
					out.Unlock()
					time.Sleep(200 * time.Millisecond)
					return fmt.Sprint(key, "-of-", os.Getpid()), nil
				})
				out.Lock()
				defer out.Unlock()
				fmt.Println("got", key, v, err)
			})
		}
		all.Wait()
	}
}

// Twenty processes with fifty callers each, on three real servers: one load for
// each of five things.
func TestProcesses(t *testing.T) {
	t.Parallel()
	const processes, things = 20, 5
	c := redistest.Start(t, 3)
	e2e.Open(t, c)
	lines := make(chan string, 10*processes*callers)
	var all []*worker.Worker
	for range processes {
		cmd, err := worker.Self(workerEnv, c.URLs())
		require.NoError(t, err)
		w, err := worker.Start(cmd, func(line string) { lines <- line })
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.Kill() })
		all = append(all, w)
	}
	for range processes {
		require.Equal(t, "ready", e2e.Receive(t, lines))
	}
	for k := range things {
		for _, w := range all {
			require.NoError(t, w.Tell(fmt.Sprint("k", k)))
		}
		loads, values := 0, map[string]int{}
		for got := 0; got < processes*callers; {
			line := e2e.Receive(t, lines)
			if strings.HasPrefix(line, "load ") {
				loads++
				continue
			}
			got++
			values[line]++
		}
		assert.Equal(t, 1, loads)
		assert.Len(t, values, 1, "%v", values)
		for line := range values {
			assert.True(t, strings.HasSuffix(line, " <nil>"), line)
		}
	}
	for _, w := range all {
		assert.NoError(t, w.End(e2e.Patience))
	}
	e2e.Clean(t, c)
}
