//go:build !mutants

package client

import "errors"

// RuleHelp says which controls there are beside the fixed ones.
const RuleHelp = "built with -tags mutants, rules of the library that are left out, too"

// WithoutRule fails: this build has all rules.
func WithoutRule(string) error {
	return errors.New("there are none, unfenced, redsync and rival, and rules of the library in a build with -tags mutants")
}
