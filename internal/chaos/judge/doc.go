// Package judge reads the logs of the clients and of the resource, and finds
// violations. It asks neither the library nor a server.
//
//	judge.go        the evidence and the findings
//	check_once.go   work that is done once, and its model
//	check_wait.go   waits, refusals and overtaking without faults
//	check_rival.go  holds at the same time as holds of redsync clients
//	check_model.go  whether some order of steps explains all results; the resource
//	check_hold.go   simultaneous holds, tokens, and answers about the leader
//	history.go      operations, as read from the logs
//
// A hold is the interval in which an operation certainly had the lock, so every
// reported violation of safety is real. A violation of liveness means that
// something came late or not at all, which may be the machine's fault.
package judge
