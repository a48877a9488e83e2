//go:build !mutants

package main

import "errors"

const ruleHelp = "built with -tags mutants, rules of the library that are left out, too"

func withoutRule(string) error {
	return errors.New("there are none, unfenced, redsync and rival, and rules of the library in a build with -tags mutants")
}
