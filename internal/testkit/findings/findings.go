// Package findings counts what a test finds, where a rule is left out.
package findings

// Findings stands for a testing.T whose failures are counted.
type Findings struct{ N int }

// Errorf counts a failure.
func (f *Findings) Errorf(string, ...any) { f.N++ }
