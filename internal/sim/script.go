package sim

import "time"

// step is one thing that a generator wants done: when cond holds, or patience
// is at its end, and then delay has passed.
type step struct {
	cond  func() bool
	limit time.Duration
	delay time.Duration
	do    func()
}

// then appends a step that needs no condition.
func (w *world) then(delay time.Duration, do func()) {
	w.steps = append(w.steps, step{delay: delay, do: do})
}

// once appends a step that waits for cond, but for so long only.
func (w *world) once(cond func() bool, limit, delay time.Duration, do func()) {
	w.steps = append(w.steps, step{cond: cond, limit: limit, delay: delay, do: do})
}

// step arms the first step when its time has come.
func (w *world) step() {
	if w.armed || len(w.steps) == 0 {
		return
	}
	s := w.steps[0]
	if w.stepLimit == 0 {
		w.stepLimit = w.now.add(s.limit)
		if s.cond != nil {
			w.at(s.limit, func() {}) // so that the condition is tested then
		}
	}
	if s.cond != nil && w.now < w.stepLimit && !s.cond() {
		return
	}
	w.armed = true
	w.at(s.delay, func() {
		w.armed, w.stepLimit = false, 0
		if len(w.steps) > 0 {
			w.steps = w.steps[1:]
			s.do()
		}
	})
}

// holds is a condition for once: t may act as holder.
func holds(t *participant) func() bool {
	return func() bool { return t.att != nil && t.att.valid() }
}
