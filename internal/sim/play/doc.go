// Package play carries out traces: schedules that a person writes as commands,
// each with what it leads to. testdata/README.md of internal/sim has the table
// of the commands.
//
//	trace.go      a trace, its settings, and the words of a command
//	commands.go   the table
//	others        the commands, by what they are about; status.go prints
package play
