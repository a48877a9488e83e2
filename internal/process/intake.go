package process

import linked "container/list"

// This file owns how many attempts of a process begin at a time. Of 30,000
// callers that lock at one moment each has the processor before the readers of
// the answers have it again: holds are not renewed, and connections are given
// up.

// Places is how many attempts of a process may wait for their first answers.
// It keeps nodes at 100 ms busy with 10,000 locks a second, and to begin so
// many takes a few milliseconds.
const Places = 1024

// Intake bounds how many attempts are on the way to their first answers. The
// callers of the others wait, and are served in order. W is a caller that
// waits. An Intake is not safe for concurrent use.
// Invariant: a place that is taken is left once, when its attempt is not
// Underway any more: see [Attempt.Underway].
type Intake[W any] struct {
	Places  int // 0: the constant
	taken   int
	waiting linked.List
}

func (i *Intake[W]) Take() bool {
	most := Places
	if i.Places > 0 {
		most = i.Places
	}
	if i.taken >= most {
		return false
	}
	i.taken++
	return true
}

func (i *Intake[W]) Wait(w W) *linked.Element { return i.waiting.PushBack(w) }

func (i *Intake[W]) Waiting() int { return i.waiting.Len() }

// Leave gives a place back. It returns the caller that has it now, if one
// waits.
func (i *Intake[W]) Leave() (next W, ok bool) {
	if first := i.waiting.Front(); first != nil {
		return i.waiting.Remove(first).(W), true
	}
	i.taken--
	return next, false
}

// GiveUp says that a caller waits no longer. Without ok it has a place, and
// must leave that.
func (i *Intake[W]) GiveUp(e *linked.Element) (ok bool) {
	n := i.waiting.Len()
	i.waiting.Remove(e)
	return i.waiting.Len() < n
}
