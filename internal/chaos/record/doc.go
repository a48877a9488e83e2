// Package record has the logs of the clients and of the resource, and the clock
// for their times. The judge reads the logs after the run. The package knows
// nothing about locks or servers.
//
//	resource.go  the resource that the locks protect, and its log of requests
//	log.go       the log of one life of a client: its events, their kinds
//	clock.go     the machine's clock, and the random sources of a seed
//
// An operation is one call of a client and everything that follows from it. Its
// name is CLIENT.LIFE.NUMBER. A client that is killed begins another life, with
// another log.
package record
