// Package demo shows a newcomer what a lock on a quorum does: real processes
// that are really killed, on nodes of its own.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/embedded"
	"github.com/quorate/quorate/internal/testkit/worker"
)

// The hidden subcommands that a demo starts its parts with.
const (
	NodeCommand      = "demo-node"
	WorkerCommand    = "demo-worker"
	DepositorCommand = "demo-depositor"
)

// Config says how large the demo is.
type Config struct {
	Nodes, Workers int
	Length         time.Duration // about
	TTL            time.Duration
	Out            io.Writer
	// How the user starts this program, for the advice at the end.
	Program string
	Command func(arguments ...string) *exec.Cmd // starts this program
}

// ErrInterrupted says that the context ended before the demo did.
var ErrInterrupted = errors.New("interrupted")

// stage is a demo that runs.
type stage struct {
	Config
	*screen
	story
	zero   time.Time // when the first worker got the lock
	file   string
	server []*worker.Worker
	crew   []*worker.Worker
	events chan event
	heard  time.Time // when something last happened
	token  func(uint64) string
	late   int // kills that came too late
}

// event is something that a worker reports; with nil it has ended.
type event struct {
	worker int
	*message
}

// patience is for what takes no time, on a machine that is busy.
const patience = 15 * time.Second

// Run shows the demo, and returns whether everything came out right.
func Run(ctx context.Context, cfg Config) (ok bool, err error) {
	dir, err := os.MkdirTemp("", "quorate-demo-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s := &stage{
		Config: cfg, screen: newScreen(cfg.Out), file: filepath.Join(dir, "number"), events: make(chan event, 4096),
		story: story{nodes: cfg.Nodes, workers: cfg.Workers, ttl: cfg.TTL, length: cfg.Length, nodeDown: -1},
	}
	if err := write(s.file, 0); err != nil {
		return false, err
	}
	defer endAll(&s.crew, &s.server)
	s.intro()
	if err := s.start(); err != nil {
		return false, err
	}
	err = s.watch(ctx)
	s.clear()
	if err != nil {
		return false, err
	}
	if err := s.finish(); err != nil {
		return false, err
	}
	n, err := read(s.file)
	if err != nil {
		return false, err
	}
	v := s.judge(n)
	s.outro(v)
	return v.ok(), nil
}

// startNodes starts the nodes, which vote at once. The caller ends those that it
// returns, also with an error.
func startNodes(cfg Config) (server []*worker.Worker, urls []string, err error) {
	for i := range cfg.Nodes {
		p, url, err := startNode(cfg.Command(NodeCommand), patience)
		if p != nil {
			server = append(server, p)
		}
		if err != nil {
			return server, nil, fmt.Errorf("start node %d: %w", i+1, err)
		}
		urls = append(urls, url)
	}
	if err := embedded.Bootstrap(urls); err != nil {
		return server, nil, fmt.Errorf("bootstrap the nodes: %w", err)
	}
	return server, urls, nil
}

// start starts the nodes and, when they serve, the workers.
func (s *stage) start() error {
	server, urls, err := startNodes(s.Config)
	s.server = server
	if err != nil {
		return err
	}
	for i := range s.Workers {
		p, err := startWorker(s.Command(WorkerCommand, "--file", s.file, "--nodes", strings.Join(urls, ","),
			"--ttl", s.TTL.String(), "--work", max(s.Length/50, 100*time.Millisecond).String()),
			func(m *message) { s.events <- event{i, m} })
		if err != nil {
			return fmt.Errorf("start worker %d: %w", i+1, err)
		}
		s.crew = append(s.crew, p)
	}
	s.heard = time.Now()
	return nil
}

// endAll stops whatever still runs, also a worker that was stopped.
func endAll(crew, server *[]*worker.Worker) {
	all := slices.Concat(*crew, *server)
	for _, p := range all {
		_ = p.Continue()
		p.EndInput()
	}
	for _, p := range all {
		_ = p.End(patience)
	}
}

// watch follows the workers until the time is over, and does the killing.
func (s *stage) watch(ctx context.Context) error {
	tick := time.NewTicker(80 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case e := <-s.events:
			if err := s.take(e); err != nil {
				return err
			}
		case <-tick.C:
		case <-ctx.Done():
			return ErrInterrupted
		}
		now := s.now()
		if s.live() && now > 0 {
			s.show(s.timeline(now, s.width(), s.style))
		}
		if time.Since(s.heard) > s.TTL+patience {
			return errors.New("nothing has happened for too long; is the machine overloaded?")
		}
		if s.nodeDown < 0 && s.Nodes > 2 && s.successor != nil && now > s.Length*65/100 {
			s.killNode()
		}
		if now > s.Length && (s.shown() || now > s.Length+s.TTL+patience) {
			return nil
		}
	}
}

// shown reports whether what is to be shown has happened: a worker came after
// the one that was killed, and the lock went on without the node. On a busy
// machine that may be later than the end.
func (s *stage) shown() bool {
	if s.successor == nil && s.mayKill() {
		return false
	}
	return s.nodeDown < 0 || slices.ContainsFunc(s.holds, func(h *hold) bool { return h.got > s.nodeDownAt })
}

func (s *stage) now() time.Duration {
	if s.zero.IsZero() {
		return 0
	}
	return time.Since(s.zero)
}

// take notes what a worker reports.
func (s *stage) take(e event) error {
	if e.message == nil {
		if err := s.crew[e.worker].Failure(); err != nil {
			return fmt.Errorf("worker %d ended: %w", e.worker+1, err)
		}
		return nil
	}
	s.heard = time.Now()
	if s.zero.IsZero() {
		s.zero = e.At
		s.token = shortener(e.Token, s.style.cut)
	}
	at := e.At.Sub(s.zero)
	h := s.current(e.worker)
	if h == nil && s.victim != nil && s.victim.worker == e.worker {
		h = s.victim
	}
	switch e.What {
	case gotIt:
		s.got(&hold{worker: e.worker, token: e.Token, from: e.Value, got: at, end: at, until: e.Until.Sub(s.zero)})
	case wrote:
		h.to, h.wrote = e.Value, true
	case released, lostIt:
		if h == s.victim {
			// Killed a moment too late: it had given the lock back already.
			s.victim, s.successor = nil, nil
			s.late++
		}
		h.end, h.fate = at, done
		if e.What == lostIt {
			h.fate = lost
		}
		s.tell(h)
	}
	return nil
}

// mayKill reports whether a worker may be killed and another one is there to
// come after it. Those that were killed too late, outside their hold, are gone.
func (s *stage) mayKill() bool { return s.Workers-s.late >= 2 }

// got notes a new holder, and kills it if one is to be killed now: a third of
// the way, while it reads, thinks and writes.
func (s *stage) got(h *hold) {
	s.holds = append(s.holds, h)
	if s.victim != nil && s.successor == nil {
		s.successor = h
		s.print("%s %s gets the lock, %s after worker %d was killed.", s.clock(h.got), s.name(h.worker),
			seconds(h.got-s.victim.end), s.victim.worker+1)
		return
	}
	if s.victim != nil || s.now() < s.Length*3/10 || !s.mayKill() {
		return
	}
	p := s.crew[h.worker]
	time.Sleep(s.Length / 200) // in the middle of its work
	_ = p.Kill()
	h.kill(s.now())
	s.victim = h
	<-p.Done()
	// What the dead worker had still reported comes first.
	var rest []event
	for len(s.events) > 0 {
		e := <-s.events
		if e.worker != h.worker {
			rest = append(rest, e)
		} else if e.message != nil {
			_ = s.take(e)
		}
	}
	if s.victim == h {
		s.print("%s %s %s", s.clock(h.end), s.name(h.worker),
			s.style.red(fmt.Sprintf("is killed (kill -9) while it holds the lock, token %s", s.token(h.token))))
		s.print("%11s It can't release the lock. But the lock is only on loan:", "")
		s.print("%11s unless the holder renews it, the nodes take it back after %s.", "", s.TTL)
	}
	for _, e := range rest {
		_ = s.take(e)
	}
}

func (s *stage) killNode() {
	const i = 1
	_ = s.server[i].Kill()
	s.nodeDown, s.nodeDownAt = i, s.now()
	s.print("%s node %d %s", s.clock(s.nodeDownAt), i+1, s.style.red("is killed."))
	s.print("%11s %d of %d nodes are left, which is still a majority, so the work goes on.", "", s.Nodes-1,
		s.Nodes)
}

// finish lets the workers end their work.
func (s *stage) finish() error {
	for _, p := range s.crew {
		p.EndInput()
	}
	for i, p := range s.crew {
		if err := p.End(patience); err != nil {
			return fmt.Errorf("worker %d ended: %w", i+1, err)
		}
	}
	for len(s.events) > 0 {
		if err := s.take(<-s.events); err != nil {
			return err
		}
	}
	return nil
}

// shortener leaves away the digits that all tokens of a demo have in common.
func shortener(first uint64, cut string) func(uint64) string {
	const perMinute = 60 * 1_000_000 << 10 // tokens follow the clock: 2^10 to a microsecond
	a, b := strconv.FormatUint(first, 10), strconv.FormatUint(first+2*perMinute, 10)
	n := 0
	for n < len(a) && len(a) == len(b) && a[n] == b[n] {
		n++
	}
	return func(t uint64) string {
		s := strconv.FormatUint(t, 10)
		return cut + s[min(n, len(s)):]
	}
}
