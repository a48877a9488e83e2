//go:build mutants

package protocol

import "time"

// lastLocalRule is the last of rules_local.go.
const lastLocalRule = RuleLostHolders

// lastRepairRule is the last of rules_repair.go.
const lastRepairRule = RuleRepairBoth

// lastMemberRule is the last of rules_members.go.
const lastMemberRule = RuleExchangeFollow

// lastRule is the one with the highest number.
const lastRule = RuleLeaveAgain

// Rules is the set of rules that are switched off, and of constants that are
// others.
type Rules struct {
	off   [5]uint64
	times [Constants]int8 // 2: doubled, -2: halved
}

// Halved returns the rules with half of a constant.
func Halved(c Constant) (r Rules) {
	r.times[c] = -2
	return r
}

// Doubled returns the rules with twice a constant.
func Doubled(c Constant) (r Rules) {
	r.times[c] = 2
	return r
}

func (r Rules) Of(c Constant, d time.Duration) time.Duration {
	switch r.times[c] {
	case -2:
		return d / 2
	case 2:
		return d * 2
	}
	return d
}

// Without returns the rule set that lacks the given rules. 0 is no rule.
func Without(off ...Rule) (r Rules) {
	for _, rule := range off {
		if rule > 0 {
			r.off[rule/64] |= 1 << (rule % 64)
		}
	}
	return r
}

func (r Rules) On(rule Rule) bool { return r.off[rule/64]&(1<<(rule%64)) == 0 }

// And returns the rule set that lacks what either lacks.
func (r Rules) And(o Rules) Rules {
	for i := range r.off {
		r.off[i] |= o.off[i]
	}
	for i, t := range o.times {
		if t != 0 {
			r.times[i] = t
		}
	}
	return r
}

// List returns the rules that are on.
func (r Rules) List() (on []Rule) {
	for rule := Rule(1); rule <= lastMemberRule; rule++ {
		known := rule <= lastRule || rule >= firstLocalRule && rule <= lastLocalRule ||
			rule >= firstRepairRule && rule <= lastRepairRule || rule >= firstMemberRule
		if r.On(rule) && known {
			on = append(on, rule)
		}
	}
	return on
}
