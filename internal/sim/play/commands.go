package play

import (
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/world"
)

// The table of commands, and the commands that are a single call.

// command carries out one line of a trace. A word that cannot be read is an
// error whatever it returns.
type command func(a *args) error

// commandsOf returns what a line of a trace may be. testdata/README.md explains
// the commands in one table.
func commandsOf(c *cast) map[string]command {
	x, b, s := c.wire, &bench{c: c}, &recorders{c, map[string]recording{}}
	return map[string]command{
		"claim": c.claim, "evict": c.evict, "propose": c.propose, "giveup": c.giveUp, "show": c.show,
		"leave": c.holder("leave"), "renew": c.holder("renew"), "shrink": c.holder("shrink"),
		"mute": c.holder("mute"), "tick": c.holder("tick"),

		"open": c.recorder(protocol.OpOpen), "put": c.recorder(protocol.OpPut),
		"erase": c.recorder(protocol.OpPut), "read": c.recorder(protocol.OpRead),

		"lock": c.lock, "unlock": c.unlock, "turns": c.turns,
		"downgrade": c.ofCaller((*world.Caller).Downgrade), "cancel": c.ofCaller((*world.Caller).GiveUp),

		"process": c.process, "resume": c.resume, "sleep": c.sleep, "spare": c.spare,
		"pause": c.ofProc((*world.Proc).Pause), "wake": c.ofProc((*world.Proc).Wake),
		"kill": c.ofProc((*world.Proc).Crash), "start": c.ofProc((*world.Proc).Restart),

		"hold": x.hold, "pass": x.pass, "deliver": c.deliver, "drop": x.drop, "repeat": x.repeat,
		"flight": x.underWay, "cut": c.cut, "heal": c.heal, "connect": c.connect,
		"break": c.ofLink((*world.Link).Snap), "ask": c.ofLink((*world.Link).AskTime),
		"subscribe": c.ofLink(func(l *world.Link) {
			l.Proc.CarryOut(l.Proc.Client.Subscribed(l.Proc.Now(), l.No))
		}),

		"restart": b.restart, "refuse": b.refuse, "clock": b.clock, "replica": b.replica, "holder": b.whoHolds,
		"crash": c.ofNodes((*world.Node).Crash), "save": c.ofNodes((*world.Node).Save),
		"stop": c.ofNodes((*world.Node).Pause), "go": c.ofNodes((*world.Node).Resume),
		"forget": c.ofNodes((*world.Node).Forget), "revert": c.ofNodes((*world.Node).Revert),
		"return": c.ofNodes((*world.Node).ComeBack),
		"lack":   c.ofNodes(func(n *world.Node) { clear(n.Names) }),
		"repair": b.repair, "undecided": b.undecided, "caughtup": b.caughtUp,
		"resize": b.resize, "forge": b.forge, "key": b.key, "unkey": b.unkey, "rival": b.rival,

		"members": s.members, "list": s.list, "record": s.recordSet,
		"exchange": s.exchange, "undo": s.undo, "decide": s.decide,

		"advance": x.advance, "at": x.at,
	}
}

// ofProc is a command of a process.
func (c *cast) ofProc(do func(q *world.Proc)) command {
	return func(a *args) error { do(c.proc(a.next())); return nil }
}

// ofNodes is a command of nodes.
func (c *cast) ofNodes(do func(n *world.Node)) command {
	return func(a *args) error {
		for _, n := range c.nodes(a) {
			do(n)
		}
		return nil
	}
}

// ofLink is a command of a connection.
func (c *cast) ofLink(do func(l *world.Link)) command {
	return func(a *args) error {
		l, err := c.link(a)
		if err == nil {
			do(l)
		}
		return err
	}
}

// ofCaller is a command of a caller.
func (c *cast) ofCaller(do func(c *world.Caller)) command {
	return func(a *args) error {
		who, err := c.caller(a.next())
		if err == nil {
			do(who)
		}
		return err
	}
}
