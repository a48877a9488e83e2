//go:build mutants

package protocol

// AllRules is every rule there is.
const AllRules = RuleStash<<1 - 1

// Rules is the set of rules that are switched off.
type Rules struct{ off Rule }

// Without returns the rule set that lacks the given rules.
func Without(off Rule) Rules { return Rules{off: off} }

func (r Rules) on(rule Rule) bool { return r.off&rule == 0 }

// And returns the rule set that lacks what either lacks.
func (r Rules) And(o Rules) Rules { return Rules{off: r.off | o.off} }
