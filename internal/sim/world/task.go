package world

import "iter"

// This file runs the straight-line tasks of production, such as an attempt to
// repair a node, as coroutines. A task runs until it waits for something. The
// event that ends the wait runs it further, so only one of them runs at a time,
// and each play of a schedule is the same.

// task is a function that runs in a process, and ends with it.
type task struct {
	p    *Proc
	on   *coroutine
	f    func(t *task)
	cut  func() // ends what it waits for
	runs bool   // it does not wait
	gone bool   // the process has ended: the task does nothing any more, and waits for nothing
}

// tasks are those of a process that are under way.
type tasks struct {
	running map[*task]struct{}
}

// coroutine carries one task after another: to begin one takes longer than most
// tasks.
type coroutine struct {
	task  *task
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

// coroutines are those of a world that carry no task.
type coroutines struct {
	free []*coroutine
}

func (s *coroutines) take() (c *coroutine) {
	if last := len(s.free) - 1; last >= 0 {
		c, s.free = s.free[last], s.free[:last]
		return c
	}
	c = &coroutine{}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		for c.yield = yield; ; {
			t := c.task
			t.f(t)
			delete(t.p.tasks.running, t)
			if s.free = append(s.free, c); !yield(struct{}{}) {
				return
			}
		}
	})
	return c
}

// run runs f until it waits for something first.
func (p *Proc) run(f func(t *task)) {
	if p.tasks.running == nil {
		p.tasks.running = map[*task]struct{}{}
	}
	t := &task{p: p, on: p.World.coroutines.take(), f: f}
	t.on.task = t
	p.tasks.running[t] = struct{}{}
	t.goOn()
}

func (t *task) goOn() {
	t.runs = true
	t.on.next()
	t.runs = false
}

// wait calls begin, and waits until done is called. It reports whether the
// process goes on.
func (t *task) wait(begin func(done func())) bool {
	if t.gone {
		return false
	}
	waits, over := false, false
	t.cut = func() {
		if over {
			return
		}
		if over = true; waits && !t.gone {
			t.goOn()
		}
	}
	begin(t.cut)
	if waits = !over; waits {
		t.on.yield(struct{}{})
	}
	return !t.gone
}

// each runs f for each k below n, all at the same time, and waits for all of
// them.
func (t *task) each(n int, f func(t *task, k int)) {
	left := n
	t.wait(func(done func()) {
		for k := range n {
			t.p.run(func(one *task) {
				f(one, k)
				if left--; left == 0 && !one.gone {
					done()
				}
			})
		}
		if n == 0 {
			done()
		}
	})
}

// end ends the tasks where they are, as the end of the process does.
func (s *tasks) end() {
	for t := range s.running {
		if t.gone = true; !t.runs { // else it ends when it would wait again
			t.goOn()
		}
	}
}

// End ends the tasks of all processes: nothing of the world is left then.
func (w *World) End() {
	for _, p := range w.Procs {
		p.tasks.end()
	}
	for _, c := range w.coroutines.free {
		c.stop()
	}
}
