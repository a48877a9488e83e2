package nodeset

// This file owns the words for how far a configuration is on the way to another
// set. What may follow it is decided in package change.

// Stage is how far an exchange of nodes has come.
type Stage uint8

const (
	Stable   Stage = iota // a majority of the members is a quorum
	Learning              // so is a majority of those that stay or leave. Those that enter take in claims, and have no vote
	Jointly               // a quorum is a majority of those that stay or leave, and one of those that stay or enter
)

func (s Stage) String() string { return [...]string{"stable", "learning", "joint"}[s] }

// Role says in which set a member counts while nodes are being exchanged.
type Role uint8

const (
	Stays Role = iota
	Leaves
	Enters
)

func (r Role) String() string { return [...]string{"stays", "leaves", "enters"}[r] }

const (
	stages = "slj"
	roles  = "sle"
)
