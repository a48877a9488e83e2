package quorate

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/core"
)

// WithDiscovery has a function say where the nodes are. It returns all of them,
// as the elements that [Connect] takes. [Connect] calls it first, and uses its
// own urls, which may be empty, only if the function fails.
//
// The function is called again while no quorum of the set is reached, and its
// list is this client's list then: where to ask which set counts. The set that
// the nodes have recorded decides which nodes count and at which addresses,
// whatever the function returns. So a node that has moved has no vote before
// the set records its new address (package members, Move). With a Redis Cluster
// in the list the function is called at the start only.
//
// A new address is reached as its URL says. An address without a scheme
// (host:port) is reached with the options of the first node of [New] or Connect
// that is a single server: user, password, database and TLS. Return URLs if the
// list of Connect is empty and the nodes want a password.
//
// The first call comes five node timeouts after the quorum was lost, the next
// ones after pauses that double up to 30 s. One call is under way at a time,
// and its context ends after 10 s or when Connect's does. No call of the
// library waits for it but Connect. What it fails with is logged once, and
// stands beside the errors of the nodes that cannot be reached. Passwords in
// URLs are left out of that. After [Quorum.Close] it is not called again; a
// call under way is left behind. It is called by one goroutine at a time, but
// it must be safe for concurrent use if several Quorums share it. Default:
// none; nil is none.
func WithDiscovery(f func(ctx context.Context) ([]string, error)) Option {
	return setting{func(s *core.Settings) { s.Discover = f }}
}

// DiscoverSRV returns a function for [WithDiscovery] that looks up the DNS SRV
// records of _service._proto.name: one record for each node. It returns
// host:port for each, in the order of the names. All records count, whatever
// their priority and weight. With empty service and proto it looks up name
// itself. It asks the resolver of package net, and is safe for concurrent use.
func DiscoverSRV(service, proto, name string) func(ctx context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		_, records, err := net.DefaultResolver.LookupSRV(ctx, service, proto, name)
		if err != nil {
			return nil, err
		}
		all := make([]string, 0, len(records))
		for _, r := range records {
			all = append(all, net.JoinHostPort(strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port))))
		}
		slices.Sort(all) // the resolver shuffles them
		return all, nil
	}
}

// discover is Connect with a function that says where the nodes are. A list
// that the nodes refuse, because they are another set, may be an old one. So
// the function is asked again, and only what it says twice is final.
func discover(ctx context.Context, urls []string, set core.Settings) (*Quorum, error) {
	var refused []string
	for pause := 5 * set.NodeTimeout; ; pause *= 2 {
		all, err := set.FirstAddresses(ctx, urls)
		if err != nil {
			return nil, wrapError("connect", "", err)
		}
		var list []string
		for _, a := range all {
			list = append(list, a.Addr)
		}
		slices.Sort(list)
		q, err := connect(ctx, all, set)
		if _, wrong := errors.AsType[*core.SetError](err); !wrong || slices.Equal(list, refused) {
			return q, err
		}
		refused = list
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}
