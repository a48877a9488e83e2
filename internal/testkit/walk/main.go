// Command walk notes which functions of the library one Lock of a free name
// runs, or its Unlock, on three servers. It is built for coverage; see `make
// walk`, and writes to the folder that it is given.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/coverage"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: walk lock|unlock FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1] == "unlock", os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "walk:", err)
		os.Exit(1)
	}
}

func run(unlock bool, folder string) (err error) {
	c, err := redistest.Run(3)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, c.Close()) }()
	ctx := context.Background()
	q, err := quorate.Connect(ctx, c.URLs())
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, q.Close()) }()
	if err := q.Bootstrap(ctx); err != nil {
		return err
	}
	m := mutex.New(q, "walk")
	steps := []func() error{coverage.ClearCounters,
		func() error { return m.LockContext(ctx) }, func() error { return nil }}
	if unlock {
		steps[0], steps[1] = steps[1], steps[0]
		steps[2] = func() error { return m.UnlockContext(ctx) }
	}
	// The first lock of a client does what no other does.
	for range 3 {
		if err := errors.Join(m.LockContext(ctx), m.UnlockContext(ctx)); err != nil {
			return err
		}
	}
	for _, step := range steps {
		time.Sleep(100 * time.Millisecond) // the last answers come
		if err := step(); err != nil {
			return err
		}
	}
	time.Sleep(20 * time.Millisecond)
	return errors.Join(coverage.WriteMetaDir(folder), coverage.WriteCountersDir(folder))
}
