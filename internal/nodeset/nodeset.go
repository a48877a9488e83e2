package nodeset

import (
	"cmp"
	"fmt"
	"strings"
)

// What a node stores about its set, and the text form of that.

// SetPhase is the progress of recording a set on a node.
type SetPhase uint8

const (
	NoSet       SetPhase = iota // the node has no configuration: it is blank
	SetAccepted                 // it has one that may not be recorded by all nodes yet, and serves no request
	SetRecorded                 // it has one that all nodes of the list had recorded, or that was decided
)

// NodeSet is what a node has recorded about its set.
type NodeSet struct {
	Promised Ballot // no lower one is accepted any more
	Accepted Ballot
	Phase    SetPhase
	// With NoSet: a random word that a client gave the node; the node gets
	// another one after each loss of its data. Empty: none.
	Life     string
	Identity string
	Config   *Configuration // nil: NoSet
	Text     string         // as the node keeps it
	// The run id of the server that shows this, if known. An older file may
	// come back with another run id.
	Run string
}

func (n *NodeSet) Stamp() Stamp {
	if n.Config == nil {
		return ""
	}
	return n.Config.Stamp
}

// Recorded returns the configuration that the node has recorded, nil if none.
func (n *NodeSet) Recorded() *Configuration {
	if n.Phase != SetRecorded {
		return nil
	}
	return n.Config
}

const phases = "-pc"

// ballotOf reads a ballot as nodes keep it: 0 stands for none.
func ballotOf(word string) Ballot {
	if word == "0" {
		return ""
	}
	return Ballot(word)
}

func (n *NodeSet) String() string {
	promised, accepted := cmp.Or(n.Promised, "0"), cmp.Or(n.Accepted, "0")
	if n.Config == nil {
		return fmt.Sprintf("%s %s - %s ", promised, accepted, cmp.Or(n.Life, "-"))
	}
	return fmt.Sprintf("%s %s %c %s %v", promised, accepted, phases[n.Phase], n.Identity, n.Config)
}

// ParseNodeSet parses what a node stores. A blank node stores nothing.
func ParseNodeSet(text string) (n NodeSet, ok bool) {
	if text == "" {
		return n, true
	}
	n.Text = text
	words := strings.SplitN(text, " ", 5)
	if len(words) != 5 || len(words[2]) != 1 {
		return n, false
	}
	phase := strings.Index(phases, words[2])
	if phase < 0 {
		return n, false
	}
	n.Promised, n.Accepted, n.Phase = ballotOf(words[0]), ballotOf(words[1]), SetPhase(phase)
	if n.Phase == NoSet {
		if words[3] != "-" {
			n.Life = words[3]
		}
		return n, true
	}
	n.Identity = words[3]
	n.Config, ok = ParseConfiguration(words[4])
	return n, ok
}
