package core

import "sync"

// tasks are the goroutines of a Quorum that Close waits for: the waker,
// recordings, and connections that begin or end. Each ends by itself when
// Quorum.closing is closed. It is safe for concurrent use; mu guards the
// beginning of a task.
// Invariant: no task begins after end has returned.
type tasks struct {
	mu      sync.Mutex
	ended   bool
	running sync.WaitGroup
}

// start runs f in a goroutine, unless end has been called.
func (t *tasks) start(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.running.Go(f)
	}
}

func (t *tasks) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
}

// wakeUps looks at the clock whenever the machine wakes up, and has the
// schedulers look at it: the timer that each of them sleeps by stood still too.
// It is a goroutine of the Quorum.
func (q *Quorum) wakeUps() {
	for was, before := q.clock.Slept(); q.waker.Wait(); {
		q.woken()
		woke, all := q.clock.Slept()
		if woke != was {
			q.driver.carryOut(q.driver.client.Slept(q.now(), woke))
			q.set.Logger.Warn("quorate: this machine was suspended; holds whose lease ended meanwhile are lost", "for", all-before)
		}
		was, before = woke, all
	}
}

func (q *Quorum) woken() {
	q.clock.CountSleep()
	q.ticks.Look()
	q.deadlines.Look()
}
