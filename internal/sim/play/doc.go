// Package play carries out traces: schedules that a person writes as commands,
// each with what it leads to. testdata/README.md of internal/sim has the table
// of the commands.
//
//	trace.go      a trace, its settings, and how it is played and shortened
//	commands.go   the table
//	clients.go    what carries out the commands; others have them by what they are about
//	wire.go       the network of a trace
//	words.go said.go status.go   what a command reads, and what is said
package play
