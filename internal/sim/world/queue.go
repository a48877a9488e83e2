package world

// kind is what an event is.
type kind uint8

const (
	evRequest kind = iota // a request reaches its node
	EvLate                // a request that its sender gave up reaches the node
	evAnswer              // an answer reaches its process
	evFail                // a process learns that a request will not be answered
	evPush                // a push reaches its process
	EvTimer               // a claim's Wake
	EvUp                  // a link is up: the claims of the process get that event
	EvDown                // a link is down: likewise
	evProc                // fn concerns a process, and waits while that is stopped
	evFunc                // fn concerns the world
)

// Event is something that happens at a moment; of two at the same moment the
// one that was scheduled first goes first.
type Event struct {
	At   Moment
	Kind kind
	Gen  uint32 // of the process: its life
	Proc *Proc
	M    *Message
	Att  *Attempt
	fn   func()
}

// queue is a binary heap. It holds keys without pointers, which the garbage
// collector need not follow as they move about; the events stay where they are.
type queue struct {
	heap   []key
	events []Event
	free   []int32
	seq    uint32
}

type key struct {
	at    Moment
	seq   uint32
	event int32
}

func (k key) before(o key) bool { return k.at < o.at || k.at == o.at && k.seq < o.seq }

func (q *queue) empty() bool { return len(q.heap) == 0 }

// next returns the moment of the first event.
func (q *queue) next() Moment { return q.heap[0].at }

func (q *queue) push(e Event) {
	q.seq++
	k := key{at: e.At, seq: q.seq}
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

func (q *queue) pop() Event {
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
