package setup

// Parsing of node addresses, for the command line and for configuration.

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/transport"
)

// ParseNodes parses the addresses of nodes. Each element holds one address, or
// several separated by commas. An address is a URL as for ParseURL, host:port
// as short for redis://host:port, or the URL of a Sentinel set or a cluster.
// Errors match ErrInvalid and give the node's position, starting from 1.
//
// An empty address is an error, even after a trailing comma: if an unset
// variable dropped a node silently, the client would have a different list.
func ParseNodes(lists []string) ([]Address, error) {
	var all []Address
	for _, list := range lists {
		for part := range strings.SplitSeq(list, ",") {
			raw := strings.TrimSpace(part)
			if raw == "" {
				return nil, fmt.Errorf("%w: the address of node %d is empty: look for an unset variable or an extra "+
					"comma",
					fault.ErrInvalid, len(all)+1)
			}
			plain := !strings.Contains(raw, "://")
			if plain {
				raw = "redis://" + raw
			}
			o, err := parseAddress(raw)
			if err != nil {
				return nil, fmt.Errorf("%w: node %d: %w", fault.ErrInvalid, len(all)+1, err)
			}
			o.plain = plain
			all = append(all, o)
		}
	}
	return all, nil
}

// ParseURL is redis.ParseURL with errors that quote nothing from the URL except
// the name of an option. The parsers of Go and go-redis may quote a part of the
// password.
func ParseURL(raw string) (*redis.Options, error) {
	scheme, _, found := strings.Cut(raw, "://")
	if !found || scheme != "redis" && scheme != "rediss" && scheme != "unix" {
		return nil, errors.New("the URL must begin with redis://, rediss://, redis+cluster://, rediss+cluster:// " +
			"or unix://")
	}
	u, err := url.Parse(raw)
	if err == nil && u.Port() != "" {
		_, err = strconv.ParseUint(u.Port(), 10, 16)
	}
	if err != nil || strings.ContainsAny(raw, "# ") || strings.Contains(u.EscapedPath()+u.RawQuery, "@") {
		return nil, fmt.Errorf("the URL must look like %s://user:password@host:port/database: %s", scheme,
			"in user and password write %25 for %, %2F for /, %3F for ?, %23 for #, %40 for @, %2C for a comma, %20 "+
				"for a space; the port is a number up to 65535")
	}
	if scheme == "unix" && u.Host != "" {
		return nil, errors.New("the path of the socket must begin with a slash: write unix:///run/redis.sock, or " +
			"unix://user:password@/run/redis.sock")
	}
	o, err := redis.ParseURL(raw)
	if err == nil {
		// The Quorum opens connections of its own and would never use these.
		o.MinIdleConns = 0
		return o, nil
	}
	// Try each option alone to find the invalid one. Only its name is reported,
	// because go-redis's error may quote a part of the URL.
	for name, values := range u.Query() {
		alone := *u
		alone.Path, alone.RawPath = "", ""
		if scheme == "unix" {
			alone.Path = "/socket"
		}
		alone.RawQuery = url.Values{name: values}.Encode()
		if _, err := redis.ParseURL(alone.String()); err != nil {
			return nil, fmt.Errorf("the URL's option %q is unknown or has an invalid value; see redis.ParseURL", name)
		}
	}
	return nil, fmt.Errorf("the URL's path must be a database number, as in %s://host:port/0, or in a unix URL "+
		"the path of a socket", scheme)
}

// parseAddress parses a URL. If it has master_name, it is the URL of a Sentinel
// set, as in redis.ParseFailoverURL. Errors go into logs, and a URL may contain
// passwords, so errors quote nothing from it.
func parseAddress(raw string) (Address, error) {
	if rest, is := strings.CutPrefix(raw, "redis+cluster://"); is {
		return parseCluster("redis://" + rest)
	}
	if rest, is := strings.CutPrefix(raw, "rediss+cluster://"); is {
		return parseCluster("rediss://" + rest)
	}
	u, err := url.Parse(raw)
	if err != nil || !u.Query().Has("master_name") {
		o, err := ParseURL(raw)
		return Address{Options: o}, err
	}
	o, err := redis.ParseFailoverURL(raw)
	switch {
	case err != nil:
		return Address{}, fmt.Errorf("the URL of a Sentinel set must look like %s: %s",
			"redis://sentinel-user:sentinel-password@host:26379/database?master_name=NAME&addr=host2:26379&username=USER&password=PASSWORD",
			"see redis.ParseFailoverURL")
	case o.MasterName == "":
		return Address{}, errors.New("the URL of a Sentinel set names no master: set master_name")
	case o.ReplicaOnly:
		return Address{},
			errors.New("the URL of a Sentinel set asks for a replica, but a node must be a master: remove " +
				"replica_only")
	}
	o.MinIdleConns = 0
	return Address{Options: &redis.Options{
		Addr: transport.SentinelName(o), DB: o.DB, DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout,
		MaxRetries: o.MaxRetries, DialerRetries: o.DialerRetries,
	}, failover: o}, nil
}

// parseCluster parses the URL of a cluster, given with a server's scheme.
// Errors quote nothing from it.
func parseCluster(raw string) (Address, error) {
	if _, err := ParseURL(strings.SplitN(raw, "?", 2)[0]); err != nil {
		return Address{}, err
	}
	o, err := redis.ParseClusterURL(raw)
	if u, _ := url.Parse(raw); err != nil || len(strings.Trim(u.Path, "/")) > 0 {
		return Address{}, fmt.Errorf("the URL of a cluster must look like %s: %s",
			"redis+cluster://user:password@host:6379?addr=host2:6379",
			"a cluster has no databases; see redis.ParseClusterURL")
	}
	// The Quorum opens its own connections. The client's pool would only keep
	// idle connections to each server.
	o.MinIdleConns = 0
	return Address{Options: &redis.Options{
		Addr: o.Addrs[0], DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, MaxRetries: o.MaxRetries,
		DialerRetries: o.DialerRetries,
	}, cluster: o}, nil
}
