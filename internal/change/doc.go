// Package change decides how an operator changes a set of nodes: what may
// follow a configuration, and when (Exchange), how the nodes decide it
// (Succession), and what one call of an operator does (Operator).
//
// It is pure, as package nodeset is. A client that only follows its set needs
// nothing of it. internal/operator runs it on servers, and internal/sim in
// schedules.
package change
