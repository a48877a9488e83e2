package play

import (
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/world"
)

// The table of commands, and the commands that are a single call.

// commands are what a line of a trace may be. testdata/README.md explains them
// in one table.
var commands map[string]func(p *player, a *args) error

func init() {
	commands = map[string]func(p *player, a *args) error{
		"claim": (*player).claim, "leave": holder("leave"), "renew": holder("renew"), "shrink": holder("shrink"),
		"mute": holder("mute"), "tick": holder("tick"), "evict": (*player).evict,
		"open": recorder(protocol.OpOpen), "put": recorder(protocol.OpPut), "erase": recorder(protocol.OpPut), "read": recorder(protocol.OpRead),
		"repair": (*player).repair, "resize": (*player).resize, "forge": (*player).forge, "propose": (*player).propose,
		"process": (*player).process, "pause": onProc((*world.Proc).Pause), "resume": (*player).resume, "sleep": (*player).sleep,
		"kill": onProc((*world.Proc).Crash), "start": onProc((*world.Proc).Restart),
		"hold": (*player).hold, "pass": (*player).pass, "deliver": (*player).deliver, "drop": (*player).drop,
		"repeat": (*player).repeat, "flight": (*player).underWay, "break": onLink((*world.Link).Snap), "connect": (*player).connect,
		"ask":   onLink((*world.Link).AskTime),
		"crash": onNodes((*world.Node).Crash), "restart": (*player).restart, "save": onNodes((*world.Node).Save), "stop": onNodes((*world.Node).Pause), "go": onNodes((*world.Node).Resume),
		"refuse": (*player).refuse, "clock": (*player).clock, "key": (*player).key, "unkey": (*player).unkey,
		"forget": onNodes((*world.Node).Forget), "revert": onNodes((*world.Node).Revert), "return": onNodes((*world.Node).ComeBack), "replica": (*player).replica, "cut": (*player).cut, "heal": (*player).heal,
		"spare": (*player).spare, "holder": (*player).whoHolds, "wake": onProc((*world.Proc).Wake), "giveup": (*player).giveUp, "caughtup": (*player).caughtUp, "rival": (*player).rival,
		"lack": onNodes(func(n *world.Node) { clear(n.Names) }), "undecided": (*player).undecided,
		"subscribe": onLink(func(l *world.Link) { l.Proc.CarryOut(l.Proc.Client.Subscribed(l.Proc.Now(), l.No)) }), "members": (*player).members, "list": (*player).list, "record": (*player).recordSet,
		"exchange": (*player).exchange, "undo": (*player).undo, "decide": (*player).decide,
		"lock": (*player).lock, "unlock": (*player).unlock, "downgrade": onCaller((*world.Caller).Downgrade), "cancel": onCaller((*world.Caller).GiveUp), "turns": (*player).turns,
		"advance": (*player).advance, "at": (*player).at, "show": (*player).show,
	}
}

// onProc is a command of a process.
func onProc(do func(q *world.Proc)) func(p *player, a *args) error {
	return func(p *player, a *args) error { do(p.proc(a.next())); return a.err }
}

// onNodes is a command of nodes.
func onNodes(do func(n *world.Node)) func(p *player, a *args) error {
	return func(p *player, a *args) error { return p.onNodes(a, do) }
}

// onLink is a command of a connection.
func onLink(do func(l *world.Link)) func(p *player, a *args) error {
	return func(p *player, a *args) error {
		l, err := p.link(a)
		if err == nil {
			do(l)
		}
		return err
	}
}

// onCaller is a command of a caller.
func onCaller(do func(c *world.Caller)) func(p *player, a *args) error {
	return func(p *player, a *args) error {
		c, err := p.caller(a.next())
		if err == nil {
			do(c)
		}
		return err
	}
}
