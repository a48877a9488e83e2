package nodeset

import (
	"github.com/quorate/quorate/internal/protocol"
	"slices"
)

// What the members report about the set, and how a client follows its set to a
// later configuration because of these reports.
// Invariant: a client adopts a later configuration only if a majority of the
// members that decide what follows show it, or what followed it, or have it in
// their registers. No configuration confirms itself: what one node shows only
// raises a question. So the client dials no address, and sends no password to
// it, that such a majority has not named (RuleSetFollow).

// memberReports holds the reports of the members that decide what follows, and
// counts the questions to them.
type memberReports struct {
	*contacts

	asked    uint32 // counts the questions to members, see mayRejoin
	byNumber [protocol.MaxNodes]memberReport
}

// memberReport is what is known from the reports of one member, and about its
// losses of data.
type memberReport struct {
	life     string // the life of its data in which it was last seen blank
	since    uint32 // the number of the first question after that; 0: it was never seen blank
	answered uint32 // the last question to which it confirmed the set
	next     RecordedNext
}

// RecordedNext is what a node's register says about the successor of a
// configuration.
type RecordedNext struct {
	Of      Stamp // the configuration whose successor this is
	Version protocol.Version
	Config  *Configuration // nil: none is recorded
}

// newer returns the configuration that the client must go on with, or nil.
func (w *memberReports) newer() *Configuration {
	if w.config == nil {
		return nil
	}
	// The later configurations that the deciding members show, one for each
	// member, the latest first.
	var shown []*Configuration
	for _, member := range w.config.Members {
		if c := w.members[member.Number].has.Recorded(); member.Role != Enters &&
			w.isCredible(member.Number) && c.Stamp.Epoch() > w.config.Stamp.Epoch() {
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

// isCredible reports whether the record of the server at member k's address
// counts as that member's report on what follows. The server must be connected
// and in this set. It must be the member, or have been the member and entered
// again as another one. A server with another member's data does not count:
// that member would count twice.
func (w *memberReports) isCredible(k int) bool {
	n, member := &w.members[k], w.config.Numbered(k)
	c := n.has.Recorded()
	return n.up && c != nil && c.Kin(w.config) && (n.has.Identity == member.Identity ||
		w.config.Member(n.has.Identity) < 0)
}

// decided returns the successor that was decided according to the members'
// registers, or nil if that is not known. A majority must serve it or have it
// in its register, and one member must serve it or all of the registers must
// have the same version.
// Invariant: members that have one value in different versions prove nothing.
// Another value may have been proposed in between, and be decided later
// (RuleSetVersion).
func (w *memberReports) decided(shown []*Configuration) *Configuration {
	deciders := w.config.Deciders()
	for k := range w.byNumber {
		next := &w.byNumber[k].next
		if deciders&(1<<k) == 0 || next.Of != w.config.Stamp || next.Config == nil ||
			next.Config.Stamp.Epoch() != w.config.Stamp.Epoch()+1 {
			continue
		}
		serves := slices.ContainsFunc(shown,
			func(c *Configuration) bool { return c.Stamp == next.Config.Stamp })
		have := w.config.numbers(func(o *Member) bool {
			if !w.isCredible(o.Number) {
				return false
			}
			has := &w.byNumber[o.Number].next
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
