package sim

import "github.com/quorate/quorate/internal/protocol"

// This file has the table of the commands, and those that are one call.

// commands are what a line of a trace may be. testdata/README.md explains them
// in one table.
var commands map[string]func(p *player, a *args) error

func init() {
	commands = map[string]func(p *player, a *args) error{
		"claim": (*player).claim, "leave": holder("leave"), "renew": holder("renew"), "shrink": holder("shrink"),
		"mute": holder("mute"), "tick": holder("tick"), "evict": (*player).evict,
		"open": recorder(protocol.OpOpen), "put": recorder(protocol.OpPut), "erase": recorder(protocol.OpPut), "read": recorder(protocol.OpRead),
		"repair": (*player).repair, "resize": (*player).resize, "forge": (*player).forge, "propose": (*player).propose,
		"process": (*player).process, "pause": onProc((*proc).pause), "resume": (*player).resume, "sleep": (*player).sleep,
		"kill": onProc((*proc).crash), "start": onProc((*proc).restart),
		"hold": (*player).hold, "pass": (*player).pass, "deliver": (*player).deliver, "drop": (*player).drop,
		"repeat": (*player).repeat, "flight": (*player).underWay, "break": onLink((*link).snap), "connect": (*player).connect,
		"ask":   onLink((*link).askTime),
		"crash": onNodes((*node).crash), "restart": (*player).restart, "save": onNodes((*node).save), "stop": onNodes((*node).pause), "go": onNodes((*node).resume),
		"refuse": (*player).refuse, "clock": (*player).clock, "key": (*player).key, "unkey": (*player).unkey,
		"forget": onNodes((*node).forget), "revert": onNodes((*node).revert), "return": onNodes((*node).comeBack), "replica": (*player).replica, "cut": (*player).cut, "heal": (*player).heal,
		"spare": (*player).spare, "holder": (*player).whoHolds, "wake": onProc((*proc).wake), "giveup": (*player).giveUp, "caughtup": (*player).caughtUp, "rival": (*player).rival,
		"lack": onNodes(func(n *node) { clear(n.names) }), "undecided": (*player).undecided,
		"subscribe": onLink(func(l *link) { l.proc.carryOut(l.proc.client.Subscribed(l.proc.now(), l.no)) }), "members": (*player).members, "list": (*player).list, "record": (*player).recordSet,
		"exchange": (*player).exchange, "undo": (*player).undo, "decide": (*player).decide,
		"lock": (*player).lock, "unlock": (*player).unlock, "downgrade": onCaller((*caller).downgrade), "cancel": onCaller((*caller).giveUp), "turns": (*player).turns,
		"advance": (*player).advance, "at": (*player).at, "show": (*player).show,
	}
}

// onProc is a command of a process.
func onProc(do func(q *proc)) func(p *player, a *args) error {
	return func(p *player, a *args) error { do(p.proc(a.next())); return a.err }
}

// onNodes is a command of nodes.
func onNodes(do func(n *node)) func(p *player, a *args) error {
	return func(p *player, a *args) error { return p.onNodes(a, do) }
}

// onLink is a command of a connection.
func onLink(do func(l *link)) func(p *player, a *args) error {
	return func(p *player, a *args) error {
		l, err := p.link(a)
		if err == nil {
			do(l)
		}
		return err
	}
}

// onCaller is a command of a caller.
func onCaller(do func(c *caller)) func(p *player, a *args) error {
	return func(p *player, a *args) error {
		c, err := p.caller(a.next())
		if err == nil {
			do(c)
		}
		return err
	}
}

// pattern reads a pattern of messages.
func (a *args) pattern() (parcel, error) {
	q, rest, err := parse(a.words)
	a.words = rest
	return q, err
}
