// Package judge reads what the clients and the resource have written down, and
// finds what must not be. It does not ask the library, and no server.
//
//	judge.go        the evidence and the findings
//	check_once.go   what is done once, and its model
//	check_wait.go   waits, refusals and overtaking when all is well
//	check_rival.go  holds beside those of redsync clients
//	check_model.go  whether an order of steps explains all results; the resource
//	check_hold.go   holds at a time, tokens, and answers about the leader
//	history.go      operations, as the logs tell of them
//
// A hold is the interval in which an operation had the lock for sure. What is
// reported is real. A violation of liveness says that something came late, or
// not at all: it may be the machine's fault.
package judge
