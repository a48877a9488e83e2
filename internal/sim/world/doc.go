// Package world owns the world of one schedule: the processes and the nodes,
// what is under way between them, what fails, and what must hold after every
// event. A generator or a trace makes a [World] and has it played.
//
//	world.go event.go   the parts, and how a schedule is played
//	proc.go client.go part.go attempt.go     a process with the machines of production
//	record.go repair.go exchange.go operator.go resize.go   what its tasks do
//	caller.go local.go                       goroutines that share a value
//	node.go node_clock.go repair_node.go members.go machine.go   the nodes and their machines
//	net.go cables.go flow.go wire.go         connections; wire.go for traces
//	faults.go rival.go                       what fails, and another Redlock client
//	judge.go decisions.go check*.go local_check.go   what must hold
//	taping.go status.go                      what is recorded and printed of a schedule
package world
