// Package record is what clients and the resource write down, and the clock
// that they do it by. The judge reads it when all is over. It knows no lock and
// no server.
//
//	resource.go  what the locks protect, and its log of what has reached it
//	log.go       the log of one life of a client: its events, their kinds
//	clock.go     the machine's one clock, and the sources of chance of a seed
//
// An operation is all that comes of one call of a client. It has a name:
// CLIENT.LIFE.NUMBER. A client that is killed begins another life, and another
// log.
package record
