package setup

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/transport"
)

// Which client is used to connect to an address.

// Clients holds the clients of the list, and the addresses that calls that
// change the set have offered. It is safe for concurrent use: mu guards offers,
// and the other fields do not change.
type Clients struct {
	list   []string
	by     map[string]redis.UniversalClient // by address
	mu     sync.Mutex
	offers map[string][]*Address // by address, the latest last
}

// NewClients returns the Clients for a list. set says what their addresses are.
func NewClients(clients []redis.UniversalClient, set *Settings) *Clients {
	s := &Clients{by: map[string]redis.UniversalClient{}, offers: map[string][]*Address{}}
	for i, c := range clients {
		s.list = append(s.list, set.NameOf(c, i))
		s.by[s.list[i]] = c
	}
	return s
}

// NameOf returns the address that the set records for the i-th client.
func (s *Settings) NameOf(c redis.UniversalClient, i int) string {
	if i < len(s.Names) && s.Names[i] != "" {
		return s.Names[i]
	}
	if c, is := c.(*redis.ClusterClient); is {
		return clusterName + sorted(c.Options().Addrs)
	}
	single, _ := Single(c)
	return single.Options().Addr
}

// database returns the number of the database that c uses. A cluster has only
// database 0.
func database(c redis.UniversalClient) int {
	if single, is := Single(c); is {
		return single.Options().DB
	}
	return 0
}

// CheckDatabases refuses clients that use different database numbers.
//
// Invariant: a client uses one database number at all nodes, listed or
// recorded. So all clients that find a set use the same number. The set records
// addresses without it. If X used database 0 of C and Y, which found
// the set at A and B, used the blank database 1 of C, Y would give C's place
// to that one. Then X could hold by A and C, and Y by B and C.
func (s *Settings) CheckDatabases(clients []redis.UniversalClient) error {
	first := database(clients[0])
	for i, c := range clients {
		if n := database(c); n != first {
			return fmt.Errorf("%w: node 1 (%s) uses database %d, but node %d (%s) uses database %d; use the same "+
				"database number for every node, in all clients",
				fault.ErrInvalid, s.NameOf(clients[0], 0), first, i+1, s.NameOf(c, i), n)
		}
	}
	return nil
}

// CheckDatabase refuses an address with another database number than the
// list's; see CheckDatabases. An address without a URL gets the list's.
func (s *Clients) CheckDatabase(a Address) error {
	if n := database(s.by[s.list[0]]); a.DB != n && (!a.plain || a.DB != 0) {
		return fmt.Errorf("%w: the URL of %s means database %d, but this client's nodes use database %d; give all "+
			"nodes of a set the same database number", fault.ErrInvalid, a.Name(), a.DB, n)
	}
	return nil
}

// Single returns the go-redis client of a node that is a server or a Sentinel
// set, that is, a node with one master at a time.
func Single(c redis.UniversalClient) (*redis.Client, bool) {
	if s, is := c.(*transport.SentinelClient); is && s != nil {
		return s.Client, true
	}
	single, is := c.(*redis.Client)
	return single, is
}

// List returns the addresses of the list, in order.
func (s *Clients) List() []string { return s.list }

// Offer records how to connect to an address while a call that changes the set
// runs. The caller must call end when the call is over. If the set may still
// need the address, stays is true: the offer then remains and replaces earlier
// ones. Otherwise it is removed.
func (s *Clients) Offer(a Address) (end func(stays bool)) {
	name, offer := a.Name(), &a
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offers[name] = append(s.offers[name], offer)
	return func(stays bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		all := s.offers[name]
		switch i := slices.Index(all, offer); {
		case i < 0: // a later offer has replaced it
		case stays:
			s.offers[name] = all[i:]
		default:
			s.offers[name] = slices.Delete(all, i, i+1)
		}
	}
}

// ClientFor returns a client for addr: the caller-supplied one if addr is in
// the list (own is false: do not close it), otherwise a new one that the caller
// must close. A new one uses the latest offer for addr, or else options copied
// from a listed client of the same kind.
func (s *Clients) ClientFor(addr string) (c redis.UniversalClient, own bool, err error) {
	s.mu.Lock()
	var offer *Address
	if all := s.offers[addr]; len(all) > 0 {
		offer = all[len(all)-1]
	}
	s.mu.Unlock()
	if offer != nil {
		return s.For(*offer)
	}
	return s.like(addr)
}

// For is ClientFor for an address that was given just now. An address without a
// URL says nothing about how to connect, so options are copied.
func (s *Clients) For(a Address) (c redis.UniversalClient, own bool, err error) {
	if name := a.Name(); a.plain || s.by[name] != nil {
		return s.like(name)
	}
	return a.Client(), true, nil
}

// like is ClientFor without the offers.
func (s *Clients) like(addr string) (c redis.UniversalClient, own bool, err error) {
	if c = s.by[addr]; c != nil {
		return c, false, nil
	}
	if rest, is := strings.CutPrefix(addr, transport.SentinelPrefix); is {
		c, err = s.failoverAt(rest)
		return c, true, err
	}
	if rest, is := strings.CutPrefix(addr, clusterName); is {
		c, err = s.clusterAt(strings.Split(rest, ","))
		return c, true, err
	}
	o, err := s.optionsAt(addr)
	if err != nil {
		return nil, false, err
	}
	return redis.NewClient(o), true, nil
}

// clusterAt returns a client for a cluster, with the options of the first
// listed cluster. The cluster may be the same: another client may have named
// other servers of it.
func (s *Clients) clusterAt(addrs []string) (redis.UniversalClient, error) {
	for _, name := range s.list {
		if c, is := s.by[name].(*redis.ClusterClient); is {
			o := *c.Options()
			o.Addrs = addrs
			return redis.NewClusterClient(&o), nil
		}
	}
	return nil, fmt.Errorf("%w: no listed node is a cluster whose options could be used", fault.ErrInvalid)
}

// failoverAt returns a client for a Sentinel set, given its recorded name:
// MASTER@HOST:PORT,HOST:PORT. Its servers are connected to with the options of
// the first listed server (see optionsAt), its Sentinels with the login of the
// first listed Sentinel set.
func (s *Clients) failoverAt(name string) (redis.UniversalClient, error) {
	at := strings.LastIndexByte(name, '@')
	if at < 1 {
		return nil, fmt.Errorf("%w: %q is not the name of a Sentinel set", fault.ErrInvalid, name)
	}
	o, err := s.optionsAt("")
	if err != nil {
		return nil, err
	}
	var user, password string
	for _, listed := range s.list {
		if c, is := s.by[listed].(*transport.SentinelClient); is {
			user, password = c.Login()
			break
		}
	}
	return transport.NewSentinelClient(&redis.FailoverOptions{
		MasterName: name[:at], SentinelAddrs: strings.Split(name[at+1:], ","),
		SentinelUsername: user, SentinelPassword: password,
		Username: o.Username, Password: o.Password, CredentialsProvider: o.CredentialsProvider,
		CredentialsProviderContext:   o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
		ClientName:                   o.ClientName, Protocol: o.Protocol,
		DB: o.DB, TLSConfig: o.TLSConfig, Dialer: o.Dialer, MaxRetries: o.MaxRetries,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, DialerRetries: o.DialerRetries,
	}), nil
}

// optionsAt copies the options of the first listed single server for addr,
// except for what belongs to that server's own address: its socket and the
// server name of its certificate. Without TLS a custom dialer is kept, and
// dials the new address. addr is empty for a Sentinel set, whose servers get
// their names when they are dialled.
func (s *Clients) optionsAt(addr string) (*redis.Options, error) {
	var first *redis.Client
	var was string // its recorded address
	for _, name := range s.list {
		c, single := Single(s.by[name])
		if single && (first == nil || isSentinel(first.Options().Addr)) {
			first, was = c, name
		}
	}
	if first == nil {
		return nil, fmt.Errorf("%w: no listed node is a single server whose options could be used",
			fault.ErrInvalid)
	}
	o := *first.Options()
	if isSentinel(o.Addr) || o.TLSConfig != nil {
		o.Dialer = nil // it would ask the Sentinels, or verify the old address
	}
	own := append(hosts(was), hosts(o.Addr)...)
	o.Addr, o.Network, o.PushNotificationProcessor = addr, "tcp", nil
	if strings.HasPrefix(addr, "/") {
		o.Network = "unix"
	}
	if o.TLSConfig != nil {
		o.TLSConfig = o.TLSConfig.Clone()
		if o.Network == "tcp" && slices.Contains(own, o.TLSConfig.ServerName) {
			o.TLSConfig.ServerName, _, _ = net.SplitHostPort(addr)
		}
	}
	return &o, nil
}

func isSentinel(addr string) bool { return strings.HasPrefix(addr, transport.SentinelPrefix) }

// hosts returns the hosts in an address: those of the Sentinels, if it is that
// of a Sentinel set.
func hosts(addr string) (all []string) {
	if rest, is := strings.CutPrefix(addr, transport.SentinelPrefix); is {
		addr = rest[strings.LastIndexByte(rest, '@')+1:]
	}
	for a := range strings.SplitSeq(addr, ",") {
		if host, _, err := net.SplitHostPort(a); err == nil {
			all = append(all, host)
		}
	}
	return all
}
