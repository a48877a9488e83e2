package core

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// attempt drives one protocol.Claim: it gives the claim the time and the
// events, and does what the claim says.
type attempt struct {
	q     *Quorum
	spec  *Spec
	owner Owner // nil: nobody is told

	// For whoever only looks: until when it is held, 0 if it is not, and in the
	// lowest bit, a nanosecond that is given up, whether somebody waits behind it.
	standing atomic.Int64

	mu    sync.Mutex
	claim protocol.Claim
	since protocol.Time // when whoever asked for it got it
	done  chan struct{} // receives at admission, or at the end of an attempt that was not admitted; nil when that has been seen
	ends  *time.Timer   // WithMaxHold
	errs  map[int]error // by node: the newest thing that it said against the claim
	waits *wait         // those who wait for something to be so

	alarms
	phase   protocol.Phase // as last seen by flush
	acks    uint32         // nodes that have confirmed the leave, a bit for each
	replies uint8          // leaves that have been answered or given up
	claimed bool           // somebody has the Hold, so a loss concerns him
	closing bool           // its Quorum closes
	told    bool           // the owner has been told of those who wait
}

// call is one request on its way; it is a link.Command.
type call struct {
	a     *attempt
	req   protocol.Request
	loads int  // how often the scripts have been loaded for it
	alone bool // not to be sent as one of many
	share [4]resp.Value
}

// calls are spare ones: a link is done with a command when it calls Reply,
// which it does once.
var calls = sync.Pool{New: func() any { return new(call) }}

// Until makes a leave outlast a broken connection, for as long as the lease
// that it is to end could last; everything else is the claim's to send again.
func (c *call) Until() time.Time {
	if c.req.Op != protocol.OpLeave {
		return time.Time{}
	}
	return c.a.q.epoch.Add(time.Duration(c.req.Sent) + c.a.spec.Set.TTL)
}

// Append encodes the request.
func (c *call) Append(dst []byte) []byte {
	a := c.a
	return script.AppendCommand(dst, a.spec.keys(), &a.claim.Terms, a.q.channel, a.q.set.Guard, a.q.set.Retention, c.req)
}

// AppendPart encodes the request as one of those of many names.
func (c *call) AppendPart(keys, args []byte) (ks, as []byte, nKeys, nArgs int) {
	a := c.a
	if c.alone || !a.spec.quiet() {
		return keys, args, 0, 0
	}
	return script.AppendPart(keys, args, a.spec.keys(), &a.claim.Terms, a.q.channel, a.q.set.Retention, c.req)
}

// Share takes the answer to a request of many names. Where there was more to do
// for this one, or something went wrong, it goes out again, by itself.
func (c *call) Share(head []resp.Value, own int64, err error) {
	if v := script.Share(c.share[:0], head, own, c.req); v != nil {
		c.Reply(v, nil)
		return
	}
	a := c.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if head != nil {
		a.spec.crowd(true)
	}
	if c.alone = true; !c.again(forgotten(err)) {
		c.free()
	}
}

// again sends the request once more, unless it would come after its own leave.
// Called with a.mu held.
func (c *call) again(load bool) bool {
	a := c.a
	if c.req.Op != protocol.OpLeave && a.claim.Phase().Final() {
		return false
	}
	n := a.q.nodes[c.req.Node]
	if load {
		n.link.Send(append(loads(), c)...)
	} else {
		n.link.Send(c)
	}
	return true
}

// free: the collector may have the attempt.
func (c *call) free() {
	*c = call{}
	calls.Put(c)
}

// Reply takes the answer; it runs on the node's reader goroutine.
func (c *call) Reply(v []resp.Value, err error) {
	a := c.a
	var ans protocol.Answer
	switch {
	case err != nil:
	case c.req.Op == protocol.OpLeave:
		_, err = script.DecodeLeave(v)
	default:
		ans, err = a.q.believe(c, v)
	}
	a.mu.Lock()
	if forgotten(err) && c.loads < maxLoads {
		if c.loads++; c.again(true) {
			a.mu.Unlock()
			return
		}
	}
	now := a.q.now()
	switch {
	case c.req.Op == protocol.OpLeave:
		a.replies++
		switch {
		case err == nil:
			a.acks |= 1 << c.req.Node
		case a.errs[c.req.Node] == nil: // else it is known why the claim came to nothing there
			a.note(c.req.Node, err)
		}
	case err != nil:
		a.note(c.req.Node, explain(a.spec, err))
		a.claim.Fail(now, c.req, forGood(err))
	default:
		a.note(c.req.Node, refusal(a.spec, ans))
		if ans.Foreign && (ans.Wait == 0 || ans.Wait > foreignPoll) {
			ans.Wait = foreignPoll
		}
		a.claim.Answer(now, c.req, ans)
		if c.req.Op == protocol.OpJoin && ans.Vote && ans.Sum == 0 {
			a.spec.crowd(false)
		}
		if _, at := a.claim.Limit(now); ans.Status == protocol.OK && ans.LimitAt < at {
			a.q.retell(a.spec) // this node has missed a Resize
		}
	}
	c.free()
	a.flushUnlock(now)
}

// believe reads the answer to what is not a leave, and takes from it what
// concerns the whole Quorum.
func (q *Quorum) believe(c *call, v []resp.Value) (protocol.Answer, error) {
	ans, err := script.Decode(v)
	if err == nil {
		err = q.distrust(c.req, ans)
	}
	if err != nil {
		return ans, err
	}
	q.heard(c.req.Node, ans)
	if c.a.spec.Counting && ans.Status == protocol.Recovering {
		q.heal(c.req.Node, ans.Incarnation) // it may have forgotten how many permits there are
	}
	return ans, nil
}

// foreignPoll is how often the head of a queue asks whether another Redlock
// client still holds the plain key: its release is the only one that nobody
// publishes. The others in the queue do not ask.
const foreignPoll = 100 * time.Millisecond

// refusal is what an answer says against the claim.
func refusal(s *Spec, a protocol.Answer) error {
	switch {
	case a.Status == protocol.Recovering:
		return &RecoveringError{Wait: a.Wait}
	case a.Status == protocol.Clash:
		return &ClashError{Asked: s.Capacity, InForce: a.Capacity}
	case a.Foreign:
		return errForeign
	}
	return nil
}

// note keeps the newest thing that a node said against the claim.
func (a *attempt) note(node int, err error) {
	switch {
	case err == nil:
		delete(a.errs, node)
	case a.errs == nil:
		a.errs = map[int]error{node: err}
	default:
		a.errs[node] = err
	}
}

// dones are spare channels for attempts: an attempt sends once, and one from
// which that has been received is empty, and nobody's.
var dones = sync.Pool{New: func() any { return make(chan struct{}, 1) }}

// start makes an attempt and sends its joins.
func (q *Quorum) start(s *Spec, try bool, o Owner) *attempt {
	id := q.newID()
	a := &attempt{q: q, spec: s, done: dones.Get().(chan struct{}), owner: o}
	a.alarms.init()
	a.claim = *protocol.NewClaim(protocol.Config{
		Terms:       protocol.Terms{ID: id, Weight: s.Weight, Capacity: s.Capacity, TTL: s.Set.TTL, Counting: s.Counting, Notify: s.Notify},
		Nodes:       len(q.nodes),
		NodeTimeout: s.Set.NodeTimeout,
		Drift:       s.Set.Drift(),
		Try:         try,
		Rules:       rules(),
	})
	if s.Set.NoRenewal {
		a.claim.StopRenewal()
	}
	a.mu.Lock() // whoever finds a registered attempt finds it started
	q.register(id, a)
	now := q.now()
	a.claim.Start(now, q.ticket(id))
	a.send()
	wall := time.Now()
	for i, n := range q.nodes {
		if !n.link.Healthy(wall) {
			a.note(i, n.link.Err()) // a try may be over before the link has refused the join
			a.claim.Suspect(now, i)
		}
	}
	a.flushUnlock(now)
	return a
}

// event gives the claim an event and does what follows from it.
func (a *attempt) event(f func(c *protocol.Claim, now protocol.Time)) {
	a.mu.Lock()
	now := a.q.now()
	f(&a.claim, now)
	a.flushUnlock(now)
}

func (a *attempt) tick() {
	a.mu.Lock()
	now := a.q.now()
	a.claim.Tick(now)
	a.flushUnlock(now)
}

// send hands the claim's requests to the links, in order: it runs with a.mu
// held, so a leave cannot overtake its own join on its way to the link.
func (a *attempt) send() {
	for _, r := range a.claim.Out {
		c := calls.Get().(*call)
		c.a, c.req = a, r
		a.q.nodes[r.Node].link.Send(c)
	}
	a.claim.Sent()
}

// flushUnlock sends what the claim wants sent, draws the consequences of a
// change of phase, and unlocks a.mu before it calls anybody back.
func (a *attempt) flushUnlock(now protocol.Time) {
	phase, was := a.claim.Phase(), a.phase
	a.phase = phase
	standing := protocol.Time(0)
	if phase == protocol.Holding {
		if standing = a.claim.Deadline() &^ 1; a.claim.Waiters() {
			standing |= 1
		}
	}
	a.standing.Store(int64(standing)) // first: what is sent below may let the next one in
	var ended error
	waiters := false
	if was == protocol.Holding && a.claimed && a.owner != nil {
		switch {
		case phase == protocol.Lost:
			ended = ErrLost
		case phase.Final() && a.closing:
			ended = ErrClosed
		}
	}
	// Note: Here is an incorrect order:
	//
	//	a.send()
	//	a.owner.Ended(ErrLost)
	//
	// A node that gets the leave gives its vote to the next at once, and the next
	// could have the lock before this holder has been told that it has lost it.
	var leaves []protocol.Request
	if ended != nil {
		leaves, a.claim.Out = a.claim.Out, nil
		a.q.telling.Add(1)
	}
	if len(a.claim.Out) > 0 {
		a.send()
	}
	if phase != was && phase == protocol.Holding {
		if a.spec.Set.MaxHold > 0 {
			a.ends = time.AfterFunc(a.spec.Set.MaxHold, a.stopRenewal)
		}
		a.done <- struct{}{}
	}
	if phase.Final() && !was.Final() {
		a.q.forget(a)
		a.q.ticks.drop(a)
		if was == protocol.Holding {
			a.q.deadlines.drop(a)
			if a.ends != nil {
				a.ends.Stop()
			}
		} else {
			a.done <- struct{}{}
		}
	}
	if !phase.Final() {
		a.q.ticks.set(a, a.claim.Wake())
		if phase == protocol.Holding {
			a.q.deadlines.set(a, a.claim.Deadline())
		}
		if now := standing&1 != 0; a.claimed && now != a.told {
			a.told, waiters = now, now && a.owner != nil
			if now {
				a.spec.crowd(true)
			}
		}
	}
	a.wakeWaits()
	a.mu.Unlock()
	if ended != nil {
		a.owner.Ended(ended)
		a.mu.Lock()
		a.claim.Out = leaves
		a.send()
		a.mu.Unlock()
		a.q.telling.Add(-1)
	}
	if ended == ErrLost {
		a.q.observe(Event{Kind: EventLost, Name: a.spec.Name, Token: a.token(0), Took: now.Sub(a.since), Err: ErrLost})
		a.q.set.Logger.Warn("quorate: lost", "name", a.spec.Name, "token", a.token(0))
	}
	if waiters {
		a.owner.Waiting()
	}
}

func (a *attempt) stopRenewal() {
	a.event(func(c *protocol.Claim, _ protocol.Time) { c.StopRenewal() })
}

// valid reports whether the claim is held now. Called with a.mu held.
func (a *attempt) valid(now protocol.Time) bool {
	return a.claim.Phase() == protocol.Holding && now < a.claim.Deadline()
}

// token is ticket * 2^10 + n.
func (a *attempt) token(n int) uint64 { return uint64(a.claim.Ticket())*MaxPasses + uint64(n) }

// leave withdraws the claim from every node. It does not wait, and reports
// whether there was a hold to end.
func (a *attempt) leave() bool {
	a.mu.Lock()
	now := a.q.now()
	held := a.valid(now)
	a.claim.Leave(now)
	a.flushUnlock(now)
	return held
}

// take looks at what became of the attempt; somebody is there to have the hold.
// It is called once, after done has received.
func (a *attempt) take() protocol.Phase {
	a.mu.Lock()
	now := a.q.now()
	a.claim.Tick(now) // the admission may have ended before its goroutine came to run
	phase := a.claim.Phase()
	if a.claimed = phase == protocol.Holding; a.claimed {
		a.since = now
	}
	dones.Put(a.done)
	a.done = nil
	a.flushUnlock(now)
	return phase
}
