package protocol

// This file names the constants that rules rest on. As with a [Rule], a build
// with the tag "mutants" can halve or double each, to see a test notice.

// Constant names one time that safety or liveness rests on.
type Constant uint8

// The constants. The comment says what comes of half of it, and of twice it.
const (
	ConstExchangeWait Constant = iota // how long both sets count: two holders; a change takes longer than it has to
	ConstRound                        // the pause between two looks at the members: more commands; a change takes longer
	ConstPatience                     // how long a node that enters may be silent: one that restarts is given up; a dead one is waited for
	ConstSuccession                   // how long a try to decide what follows may take: a lock of an operator that died outlasts it; the members are not looked at meanwhile
	ConstUndo                         // how long undoing may take: a slow register leaves the set half-way; an operator waits
	ConstFsyncLag                     // how long a write may be missing from an append-only file: a node comes back with the set of before; a change takes longer
	ConstSaveAgain                    // the pause after a snapshot that has failed: more of them; a change takes longer
	Constants                         // how many there are
)
