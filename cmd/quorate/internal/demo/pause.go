package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/testkit/worker"
)

// The balance at the start, and what each worker adds.
const opening = 100

var deposits = []int{50, 30}

// errEarly says that a worker ended with a status of 0 before its work was done.
var errEarly = errors.New("it had not done its work")

// account is a resource that workers write to. It remembers the highest token
// that it has seen.
type account struct {
	balance int
	highest uint64
}

// write sets the balance, unless the token is lower than the highest.
func (a *account) write(token uint64, balance int) (ok bool) {
	if token < a.highest {
		return false
	}
	a.highest, a.balance = token, balance
	return true
}

// pause is a demo of a holder that sleeps through its lease, and then writes.
type pause struct {
	Config
	*screen
	dir    string
	zero   time.Time // when worker 1 got the lock
	urls   []string
	server []*worker.Worker
	crew   []*worker.Worker
	events chan event
	token  func(uint64) string

	fenced   account
	unfenced int // the balance of an account that does not look at tokens
	got      [2]message
	refused  bool
	told     bool // that worker 1 has lost the lock
}

// Pause shows a late write and the fence that refuses it, and returns whether
// everything came out right. It needs a system that can stop a process.
func Pause(ctx context.Context, cfg Config) (ok bool, err error) {
	dir, err := os.MkdirTemp("", "quorate-demo-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s := &pause{
		Config: cfg, screen: newScreen(cfg.Out), dir: dir, events: make(chan event, 16),
		fenced: account{balance: opening}, unfenced: opening,
	}
	defer endAll(&s.crew, &s.server)
	s.intro()
	if err := write(s.file(), opening); err != nil {
		return false, err
	}
	s.server, s.urls, err = startNodes(cfg)
	if err != nil {
		return false, err
	}
	for _, scene := range []func(context.Context) error{s.fallAsleep, s.overtake, s.wakeUp} {
		if err := scene(ctx); err != nil {
			return false, err
		}
	}
	v := s.judge()
	s.print("\n%s", s.style.bold("Did everything go right?"))
	s.checks(v)
	if !v.ok() {
		s.askForReport()
		return false, nil
	}
	s.print("\n%s", s.style.bold("In your program"))
	s.print("  Package github.com/quorate/quorate/fence has such fences for PostgreSQL, MySQL, SQLite,")
	s.print("  Redis and HTTP services. docs/use/fencing.md shows how to use them.")
	return true, nil
}

func (s *pause) file() string { return filepath.Join(s.dir, "balance") }

// fallAsleep lets worker 1 get the lock, and stops it before it writes.
func (s *pause) fallAsleep(ctx context.Context) error {
	if err := s.hire(ctx, 0); err != nil {
		return err
	}
	if err := s.crew[0].Stop(); err != nil {
		return fmt.Errorf("stop worker 1 (needs Linux or macOS): %w", err)
	}
	s.say("%s checks once more: it holds the lock. Then it %s, just before it writes %d.",
		s.name(0), s.style.red("is stopped (SIGSTOP)"), opening+deposits[0])
	s.more("Freezing a container or closing a laptop lid does the same to a program.")
	s.more("A stopped worker can't renew its lease, so the nodes take the lock back after %s.", s.TTL)
	return nil
}

// overtake lets worker 2 do its work meanwhile.
func (s *pause) overtake(ctx context.Context) error {
	if err := s.hire(ctx, 1); err != nil {
		return err
	}
	if err := s.finish(ctx, 1); err != nil {
		return err
	}
	_, err := s.await(ctx, 1, released)
	return err
}

// wakeUp lets worker 1 go on.
func (s *pause) wakeUp(ctx context.Context) error {
	s.say("%s continues (SIGCONT). It doesn't know that it was asleep.", s.name(0))
	if err := s.crew[0].Continue(); err != nil {
		return err
	}
	if err := s.finish(ctx, 0); err != nil {
		return err
	}
	_, err := s.await(ctx, 0, lostIt)
	if err == nil {
		s.told = true
		s.say("%s checks its context: the lock is lost, so it stops.", s.name(0))
	}
	return err
}

// hire starts a worker, which waits for the lock and reads the balance.
func (s *pause) hire(ctx context.Context, i int) error {
	cmd := s.Command(DepositorCommand, "--file", s.file(), "--nodes",
		strings.Join(s.urls, ","), "--ttl", s.TTL.String())
	p, err := startWorker(cmd, func(m *message) { s.events <- event{i, m} })
	if err != nil {
		return fmt.Errorf("start worker %d: %w", i+1, err)
	}
	s.crew = append(s.crew, p)
	m, err := s.await(ctx, i, gotIt)
	if err != nil {
		return err
	}
	s.got[i] = *m
	if i == 0 {
		s.zero, s.token = m.At, shortener(m.Token, s.style.cut)
	}
	s.say("%s gets the lock, token %s, and reads the balance: %d.", s.name(i), s.token(m.Token), m.Value)
	return nil
}

// finish has a worker write, and carries that out on both accounts.
func (s *pause) finish(ctx context.Context, i int) error {
	if err := s.crew[i].Tell(fmt.Sprint(deposits[i])); err != nil {
		return err
	}
	m, err := s.await(ctx, i, wrote)
	if err != nil {
		return err
	}
	s.say("%s writes %d with its token, %s.", s.name(i), m.Value, s.token(m.Token))
	lost := m.Value != s.unfenced+deposits[i]
	s.unfenced = m.Value
	highest := s.fenced.highest
	var without, with string
	if lost {
		without = s.style.red("the deposit of worker 2 is lost")
	}
	if !s.fenced.write(m.Token, m.Value) {
		s.refused = true
		with = s.style.green(fmt.Sprintf("rejected: token %s is lower than %s", s.token(m.Token), s.token(highest)))
	} else if err := write(s.file(), m.Value); err != nil {
		return err
	}
	s.more("without a fence  %d  %s", s.unfenced, without)
	s.more("with a fence     %d  %s", s.fenced.balance, with)
	return nil
}

// await returns the next message of a worker, which must be of this kind.
func (s *pause) await(ctx context.Context, i int, what string) (*message, error) {
	select {
	case e := <-s.events:
		switch {
		case e.message == nil:
			return nil, fmt.Errorf("worker %d ended: %w", e.worker+1, cmp.Or(s.crew[e.worker].Failure(), errEarly))
		case e.worker != i || e.What != what:
			return nil, fmt.Errorf("worker %d reports %q where worker %d should report %q",
				e.worker+1, e.What, i+1, what)
		}
		return e.message, nil
	case <-ctx.Done():
		return nil, ErrInterrupted
	case <-time.After(s.TTL + patience):
		return nil, errors.New("nothing has happened for too long; is the machine overloaded?")
	}
}

// judge looks at what happened.
func (s *pause) judge() *verdict {
	v := &verdict{}
	first, second := s.got[0], s.got[1]
	both := opening + deposits[0]
	v.add(!second.At.Before(first.Until), "Worker 2 got the lock only after worker 1's lease had expired.")
	v.add(second.Token > first.Token, "Worker 2's token was higher.")
	v.add(s.unfenced == both,
		fmt.Sprintf("Without a fence the stale write went through: the balance is %d, so %d are missing.",
			s.unfenced, deposits[1]))
	v.add(s.refused && s.fenced.balance == opening+deposits[1],
		fmt.Sprintf("The fence rejected the stale write: the balance is %d, as worker 2 left it.",
			s.fenced.balance))
	v.add(s.told, "Worker 1 found out as soon as it checked. It could not check while it was stopped.")
	return v
}

func (s *pause) intro() {
	s.print("%s\n", s.style.bold("A stale write, and the fence that rejects it"))
	s.print("Two workers pay into one account. A worker takes the lock, reads the balance, and writes a")
	s.print("higher one. Each holder of the lock has a token, and later holders have higher tokens.")
	s.print("There are two copies of the account. One has a fence: it remembers the highest token it has")
	s.print("seen and rejects lower ones. The other one accepts every write.\n")
}

func (s *pause) name(i int) string { return s.style.worker(i, fmt.Sprintf("worker %d", i+1)) }

func (s *pause) say(format string, args ...any) {
	at := fmt.Sprintf("%9s ", seconds(time.Since(s.zero)))
	s.print("%s %s", at, fmt.Sprintf(format, args...))
}

func (s *pause) more(format string, args ...any) {
	s.print("%s", strings.TrimRight(fmt.Sprintf("%11s "+format, slices.Concat([]any{""}, args)...), " "))
}
