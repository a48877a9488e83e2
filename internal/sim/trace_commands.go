package sim

import (
	"github.com/quorate/quorate/internal/protocol"
)

// commands are what a line of a trace may be. testdata/README.md explains them
// in one table.
var commands map[string]func(p *player, a *args) error

func init() {
	commands = map[string]func(p *player, a *args) error{
		"claim": (*player).claim, "leave": holder("leave"), "renew": holder("renew"), "shrink": holder("shrink"),
		"mute": holder("mute"), "tick": holder("tick"), "evict": (*player).evict,
		"open": recorder(protocol.OpOpen), "put": recorder(protocol.OpPut), "erase": recorder(protocol.OpPut), "read": recorder(protocol.OpRead),
		"repair": (*player).repair, "resize": (*player).resize, "forge": (*player).forge, "propose": (*player).propose,
		"process": (*player).process, "pause": (*player).pause, "resume": (*player).resume, "sleep": (*player).sleep,
		"kill": (*player).kill, "start": (*player).start,
		"hold": (*player).hold, "pass": (*player).pass, "deliver": (*player).deliver, "drop": (*player).drop,
		"repeat": (*player).repeat, "flight": (*player).underWay, "break": (*player).snap, "connect": (*player).connect,
		"ask":   (*player).ask,
		"crash": (*player).crash, "restart": (*player).restart, "save": (*player).save, "stop": (*player).stop, "go": (*player).resumeNode,
		"refuse": (*player).refuse, "clock": (*player).clock, "key": (*player).key, "unkey": (*player).unkey,
		"forget": (*player).forget, "revert": (*player).revert, "replica": (*player).replica, "cut": (*player).cut, "heal": (*player).heal,
		"spare": (*player).spare, "holder": (*player).whoHolds, "wake": (*player).wake, "giveup": (*player).giveUp, "caughtup": (*player).caughtUp, "rival": (*player).rival,
		"lack": (*player).lack, "undecided": (*player).undecided,
		"subscribe": (*player).subscribe, "members": (*player).members, "list": (*player).list, "record": (*player).recordSet,
		"exchange": (*player).exchange, "undo": (*player).undo, "decide": (*player).decide,
		"lock": (*player).lock, "unlock": (*player).unlock, "downgrade": (*player).downgrade, "cancel": (*player).cancel, "turns": (*player).turns,
		"advance": (*player).advance, "at": (*player).at, "show": (*player).show,
	}
}

// pattern reads a pattern of messages.
func (a *args) pattern() (parcel, error) {
	q, rest, err := parse(a.words)
	a.words = rest
	return q, err
}
