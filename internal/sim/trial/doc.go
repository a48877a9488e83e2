// Package trial owns what is tried on a world: a schedule is played, things
// fail in it, operators and another Redlock client act, and after every event
// the promises must hold. A generator or a trace makes a [Schedule].
//
//	play.go                                  how a schedule is played
//	faults.go operator.go rival.go           what fails, and what others do
//	judging.go checks.go                     what is judged, and the promises of all names together
//	check.go check_order.go resize.go local_check.go   the promises of each name
//	schedule.go                              the parts
package trial
