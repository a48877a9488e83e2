package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/embedded"
	"github.com/quorate/quorate/mutex"
)

// What a worker reports, one JSON object a line.
const (
	gotIt    = "got"      // it has the lock, and has read Value
	wrote    = "wrote"    // it has written Value
	released = "released" // it has given the lock back
	lostIt   = "lost"     // it has lost the lock, and has written nothing
)

// message is one thing that a worker reports.
type message struct {
	What  string
	At    time.Time
	Token uint64    `json:",omitzero"`
	Value int       `json:",omitzero"`
	Until time.Time `json:",omitzero"` // when its lease ends unless renewed
}

// WorkerConfig is the configuration of a worker process.
type WorkerConfig struct {
	Nodes []string
	Name  string
	File  string
	TTL   time.Duration
	Work  time.Duration // mean time between reading and writing
}

// Worker is a worker process: it raises the number in the file, under the lock
// and with no other protection, until in ends.
func Worker(in io.Reader, out io.Writer, cfg WorkerConfig) error {
	ctx := untilEnd(in)
	q, err := quorate.Connect(ctx, cfg.Nodes, quorate.WithTTL(cfg.TTL),
		quorate.WithNodeTimeout(min(200*time.Millisecond, cfg.TTL/4)))
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	m := mutex.New(q, cfg.Name)
	report := json.NewEncoder(out)
	for ctx.Err() == nil {
		if err := m.LockContext(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		end, err := raise(m.Lease(), report, cfg)
		end.At = time.Now()
		m.Unlock()
		if err != nil {
			return err
		}
		if err := report.Encode(end); err != nil {
			return err
		}
	}
	return nil
}

// raise does the work of one hold. Reading, thinking and writing is what goes
// wrong as soon as two do it at the same time.
func raise(lease quorate.Lease, report *json.Encoder, cfg WorkerConfig) (end message, err error) {
	now := time.Now()
	n, err := read(cfg.File)
	if err != nil {
		return end, err
	}
	if err := report.Encode(message{What: gotIt, At: now, Token: lease.Token(), Value: n,
		Until: lease.ValidUntil()}); err != nil {
		return end, err
	}
	select {
	case <-time.After(cfg.Work*3/4 + rand.N(cfg.Work/2)):
	case <-lease.Context().Done():
		return message{What: lostIt}, nil
	}
	if err := write(cfg.File, n+1); err != nil {
		return end, err
	}
	return message{What: released}, report.Encode(message{What: wrote, At: time.Now(), Value: n + 1})
}

func read(file string) (int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// write replaces the file in one step, so that a worker that is killed while it
// writes leaves the old number or the new one, and never half of one.
func write(file string, n int) error {
	next := fmt.Sprintf("%s.%d", file, os.Getpid())
	if err := os.WriteFile(next, []byte(strconv.Itoa(n)+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(next, file)
}

// Node is a node process: one Redis-compatible node, until in ends.
func Node(in io.Reader, out io.Writer) error {
	ns, err := embedded.StartPart()
	if err != nil {
		return err
	}
	defer ns.Close()
	if _, err := fmt.Fprintln(out, ns.URLs()[0]); err != nil {
		return err
	}
	<-untilEnd(in).Done()
	return nil
}

// untilEnd returns a context that ends with in: the parent holds the other end
// of this pipe, so no part outlives it, however it ends.
func untilEnd(in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, bufio.NewReader(in))
		cancel()
	}()
	return ctx
}
