//go:build mutants

package protocol

// lastLocalRule is the last of rules_local.go.
const lastLocalRule = RuleLostLeft

// lastRepairRule is the last of rules_repair.go.
const lastRepairRule = RuleRepairBoth

// lastMemberRule is the last of rules_members.go.
const lastMemberRule = RuleExchangeRead

// lastRule is the one with the highest number.
const lastRule = RuleRecordsWait

// Rules is the set of rules that are switched off.
type Rules struct{ off [5]uint64 }

// Without returns the rule set that lacks the given rules. 0 is no rule.
func Without(off ...Rule) (r Rules) {
	for _, rule := range off {
		if rule > 0 {
			r.off[rule/64] |= 1 << (rule % 64)
		}
	}
	return r
}

func (r Rules) on(rule Rule) bool { return r.off[rule/64]&(1<<(rule%64)) == 0 }

// And returns the rule set that lacks what either lacks.
func (r Rules) And(o Rules) Rules {
	for i := range r.off {
		r.off[i] |= o.off[i]
	}
	return r
}

// On returns the rules that are on.
func (r Rules) On() (on []Rule) {
	for rule := Rule(1); rule <= lastMemberRule; rule++ {
		known := rule <= lastRule || rule >= firstLocalRule && rule <= lastLocalRule ||
			rule >= firstRepairRule && rule <= lastRepairRule || rule >= firstMemberRule
		if r.on(rule) && known {
			on = append(on, rule)
		}
	}
	return on
}
