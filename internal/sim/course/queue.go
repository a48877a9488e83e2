package course

// The queue of future events, ordered by time.

// Queue is a binary heap. Of two events at the same moment the one that was
// pushed first goes first. It holds keys without pointers, which the garbage
// collector need not follow as they move about; the events stay where they are.
type Queue[E any] struct {
	heap   []key
	events []E
	free   []int32
	seq    uint32
}

type key struct {
	at    Moment
	seq   uint32
	event int32
}

func (k key) before(o key) bool { return k.at < o.at || k.at == o.at && k.seq < o.seq }

func (q *Queue[E]) Empty() bool { return len(q.heap) == 0 }

// Next returns the moment of the first event.
func (q *Queue[E]) Next() Moment { return q.heap[0].at }

func (q *Queue[E]) Push(at Moment, e E) {
	q.seq++
	k := key{at: at, seq: q.seq}
	if n := len(q.free); n > 0 {
		k.event, q.free = q.free[n-1], q.free[:n-1]
		q.events[k.event] = e
	} else {
		k.event = int32(len(q.events))
		q.events = append(q.events, e)
	}
	h := append(q.heap, k)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !k.before(h[up]) {
			break
		}
		h[i], i = h[up], up
	}
	h[i] = k
	q.heap = h
}

func (q *Queue[E]) Pop() E {
	h := q.heap
	top, n := h[0], len(h)-1
	last := h[n]
	h = h[:n]
	i := 0
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h[c+1].before(h[c]) {
			c++
		}
		if last.before(h[c]) {
			break
		}
		h[i], i = h[c], c
	}
	if n > 0 {
		h[i] = last
	}
	q.heap = h
	q.free = append(q.free, top.event)
	return q.events[top.event]
}
