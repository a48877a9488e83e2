// Package world owns the world of one schedule: the processes and the nodes,
// and what is under way between them. What happens in it, a [Judge] hears. The
// package trial plays it.
//
//	world.go                                 the parts, and how an event reaches them
//	proc.go client.go part.go attempt.go     a process with the machines of production
//	task.go record.go repair.go exchange.go  its tasks, and what they do
//	machine.go members.go decisions.go       what it runs on, which set it follows, and what was decided of that
//	caller.go local.go                       goroutines that share a value
//	node.go node_asked.go node_fails.go      a node, what it is asked beside claims, and what befalls it
//	net.go flow.go                           connections, and the room at the nodes
//	taping.go words.go                       what is recorded of a schedule, and how it is named
package world
