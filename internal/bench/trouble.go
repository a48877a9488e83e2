package main

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/testkit/proxy"
)

// trouble is what is wrong with the last of the nodes.
type trouble string

const (
	none   trouble = ""
	killed trouble = "killed"
	// It takes connections and answers nothing: what a network that drops
	// everything looks like to those that are connected.
	hung trouble = "hung"
	slow trouble = "50 ms away"
)

const slowBy = 50 * time.Millisecond // there and back

// prepare returns the ways to the nodes, and what brings the trouble about once
// all are connected.
func (t trouble) prepare(st *stage, n servers.Nodes) (through servers.Nodes, cause func() error, err error) {
	last := n.Len() - 1
	switch t {
	case killed:
		n.Deaf = 1
		return n, n.Node(last).Kill, nil
	case hung:
		n.Deaf = 1
		return n, n.Node(last).Stop, nil
	case slow:
		p, err := proxy.Open(n.Ways[last])
		if err != nil {
			return n, nil, err
		}
		st.onClose(p.Close)
		p.Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: slowBy / 2})
		n.Ways = append(slices.Clone(n.Ways[:last]), p.Addr())
	}
	return n, func() error { return nil }, nil
}

// away returns ways to the nodes through proxies that take so long there and
// back.
func away(st *stage, n servers.Nodes, trip time.Duration) (servers.Nodes, error) {
	n.Ways = slices.Clone(n.Ways)
	for i, way := range n.Ways {
		p, err := proxy.Open(way)
		if err != nil {
			return n, err
		}
		st.onClose(p.Close)
		p.Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: trip / 2})
		n.Ways[i] = p.Addr()
	}
	return n, nil
}
