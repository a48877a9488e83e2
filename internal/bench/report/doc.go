// Package report has the results of a run of benches, and prints and draws
// them.
//
//	result.go figures.go names.go    one bench: its figures and its sides, by their names
//	results.go table.go              a run, as JSON and as tables
//	plots.go ends.go theme.go        the plots, the names beside their lines, their colours
//	flame.go flame_svg.go            where the processor time went
package report
