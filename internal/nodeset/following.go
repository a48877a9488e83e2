package nodeset

import (
	"github.com/quorate/quorate/internal/protocol"
	"slices"
)

// This file owns what the members say of the set, and how a client that counts
// on a configuration follows its set to a later one by that.
// Invariant: a client adopts a later configuration only when a majority of the
// members that decide what follows show it, or what followed it, or have it in
// their registers. No configuration vouches for itself: what one node shows is
// a question. So no address is dialled, and no password sent, that such a
// majority has not named (RuleSetFollow).

// memberWords are what the members that decide what follows have said, and what
// they are asked.
type memberWords struct {
	*contacts

	asked uint32                  // counts the questions to members, see vouched
	said  [protocol.MaxNodes]said // by number
}

// said is what is known by the words of one member.
type said struct {
	life     string // the life of its data in which it was last seen blank
	since    uint32 // the number of the first question after that; 0: it was never seen so
	answered uint32 // the last question to which it said the set
	next     RecordedNext
}

// RecordedNext is what a node's register says of what follows a configuration.
type RecordedNext struct {
	Of      Stamp // the configuration that is followed
	Version protocol.Version
	Config  *Configuration // nil: nothing
}

// newer returns the configuration that the client is to go on with, nil if none
// is found.
func (w *memberWords) newer() *Configuration {
	if w.config == nil {
		return nil
	}
	// The later configurations that members show which decide what follows, the
	// latest first: one for each of these members.
	var shown []*Configuration
	for _, member := range w.config.Members {
		if c := w.members[member.Number].has.Recorded(); member.Role != Enters && w.speaks(member.Number) && c.Stamp.Epoch() > w.config.Stamp.Epoch() {
			shown = append(shown, c)
		}
	}
	slices.SortFunc(shown, func(a, b *Configuration) int { return b.Stamp.Compare(a.Stamp) })
	need := protocol.NeedOf(w.config.Deciders()) //mutant:RuleSetFollow=1
	if len(shown) >= need {
		return shown[need-1]
	}
	return w.decided(shown)
}

// speaks reports whether what the server at the address of member k keeps is
// that member's word on what follows: it is connected, of this set, and the
// member, or was the member and has entered again as another one. A server with
// the data of another member is not: that one would speak twice.
func (w *memberWords) speaks(k int) bool {
	n, member := &w.members[k], w.config.Numbered(k)
	c := n.has.Recorded()
	return n.up && c != nil && c.Kin(w.config) && (n.has.Identity == member.Identity || w.config.Member(n.has.Identity) < 0)
}

// decided returns what the registers of the members say was decided to follow,
// nil if that is not known: a majority serves it, or has it in its register,
// and either one serves it or all of these have it of one version.
// Invariant: members that have one value of different versions prove nothing.
// Another value may have been proposed in between, and be decided later
// (RuleSetVersion).
func (w *memberWords) decided(shown []*Configuration) *Configuration {
	deciders := w.config.Deciders()
	for k := range w.said {
		next := &w.said[k].next
		if deciders&(1<<k) == 0 || next.Of != w.config.Stamp || next.Config == nil || next.Config.Stamp.Epoch() != w.config.Stamp.Epoch()+1 {
			continue
		}
		serves := slices.ContainsFunc(shown, func(c *Configuration) bool { return c.Stamp == next.Config.Stamp })
		have := w.config.numbers(func(o *Member) bool {
			if !w.speaks(o.Number) {
				return false
			}
			has := &w.said[o.Number].next
			recorded := has.Of == next.Of && has.Config != nil && has.Config.Stamp == next.Config.Stamp &&
				(serves || has.Version == next.Version) //mutant:RuleSetVersion
			return recorded || w.members[o.Number].has.Stamp() == next.Config.Stamp
		})
		if protocol.Most(deciders, have) && next.Config.Kin(w.config) {
			return next.Config
		}
	}
	return nil
}
