package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// Depositor is a worker process that takes the lock, reads the balance, and
// writes a higher one when its parent says how much to add. It does not look at
// its lease in between: a program can be paused between any two steps, also
// between the last look and the write.
func Depositor(in io.Reader, out io.Writer, cfg WorkerConfig) error {
	ctx, cancel := context.WithCancel(context.Background())
	lines := make(chan string)
	go func() {
		defer cancel()
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- s.Text()
		}
	}()
	q, err := quorate.Connect(ctx, cfg.Nodes, quorate.WithTTL(cfg.TTL),
		quorate.WithNodeTimeout(min(200*time.Millisecond, cfg.TTL/4)))
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	m := mutex.New(q, cfg.Name)
	if err := m.LockContext(ctx); err != nil {
		return err
	}
	lease, report := m.Lease(), json.NewEncoder(out)
	balance, err := read(cfg.File)
	if err != nil {
		return err
	}
	if lease.Context().Err() != nil {
		return fmt.Errorf("lost the lock before the work began: %w", context.Cause(lease.Context()))
	}
	got := message{What: gotIt, At: time.Now(), Token: lease.Token(), Value: balance, Until: lease.ValidUntil()}
	if err := report.Encode(got); err != nil {
		return err
	}
	var amount int
	select {
	case line := <-lines:
		if amount, err = strconv.Atoi(line); err != nil {
			return err
		}
	case <-ctx.Done():
		return nil
	}
	if err := report.Encode(message{What: wrote, At: time.Now(), Token: lease.Token(),
		Value: balance + amount}); err != nil {
		return err
	}
	end := released
	if lease.Context().Err() != nil {
		end = lostIt
	}
	m.Unlock() // does nothing after a loss
	if err := report.Encode(message{What: end, At: time.Now()}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
