package main

import (
	"bytes"

	"github.com/Shopify/toxiproxy/v2/stream"
)

// connKind is what a client uses a connection for.
type connKind int

const (
	commands connKind = iota // requests and their answers
	pushes                   // what the node publishes
	kindsOfConns
)

// sniffer passes on what a link transports, and finds out whether the connection is a
// subscription: the client's SUBSCRIBE and the node's confirmation both say so at its
// beginning, each in its own direction.
type sniffer struct {
	out   chan *stream.StreamChunk
	found chan struct{} // closed when it is a subscription
}

// sniffed is how much of a connection is looked at: a subscription has only logged in before.
const sniffed = 4096

func newSniffer(in <-chan *stream.StreamChunk) *sniffer {
	s := &sniffer{out: make(chan *stream.StreamChunk), found: make(chan struct{})}
	go s.run(in)
	return s
}

func (s *sniffer) run(in <-chan *stream.StreamChunk) {
	defer close(s.out)
	var seen []byte
	found := false
	for c := range in {
		if !found && len(seen) < sniffed {
			seen = append(seen, c.Data...)
			if found = subscribes(seen); found {
				close(s.found)
			}
		}
		s.out <- c
	}
}

// subscribes says whether the beginning of a connection, in either direction, is one of a subscription.
func subscribes(data []byte) bool {
	return bytes.Contains(bytes.ToLower(data), []byte("$9\r\nsubscribe\r\n"))
}
