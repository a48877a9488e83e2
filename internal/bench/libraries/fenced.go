package libraries

import (
	"context"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/resp"
)

// The fenced floor is the floor for a lock that offers more than a plain key: a
// token that survives the release, nodes that do not vote for a guard time
// after a data loss, and clocks that are watched. It makes the calls that such
// a lock cannot do without, in one script for each step, without any of the
// decisions. To lock, the script reads the time, the state of the name and the
// node's marker, and sets the key and its holder if the key is free. To unlock,
// it checks the owner of the key and deletes the key, and the token stays. So
// the difference between this floor and the plain one is not the library's
// overhead.

const (
	fencedLock = `local clock, had = redis.call("TIME"), redis.call("MGET", KEYS[2], KEYS[3])
if not redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2], "NX") then return 0 end
redis.call("SET", KEYS[2], ARGV[3], "PX", ARGV[4])
return 1`
	fencedUnlock = `if redis.call("MGET", KEYS[1], KEYS[2])[1] ~= ARGV[1] then return 0 end
redis.call("DEL", KEYS[1])
redis.call("SET", KEYS[2], ARGV[2], "PX", ARGV[3])
return 1`
)

func openFenced(ctx context.Context, n servers.Nodes) (Client, error) {
	f, err := newFloor(ctx, n, TTL)
	if err != nil {
		return nil, err
	}
	c := &fenced{floor: f, kept: strconv.FormatInt((TTL + 5*time.Minute).Milliseconds(), 10)}
	for i := range n.Ways {
		for sha, source := range map[*string]string{&c.lock: fencedLock, &c.unlock: fencedUnlock} {
			if *sha, err = n.Node(i).Client().ScriptLoad(ctx, source).Result(); err != nil {
				f.Close()
				return nil, err
			}
		}
	}
	return c, nil
}

type fenced struct {
	*floor
	lock, unlock string
	kept         string // how long the token is kept, in milliseconds
}

func (f *fenced) Mutex(name string) Locker {
	return &fencedMutex{f: f, floorMutex: f.floor.Mutex(name).(*floorMutex), state: "fenced:{" + name + "}"}
}

type fencedMutex struct {
	*floorMutex
	f     *fenced
	state string
	token string
}

func (m *fencedMutex) Lock(context.Context) error {
	m.token = strconv.FormatInt(time.Now().UnixMicro(), 10)
	m.out = resp.AppendCommand(m.out[:0], "EVALSHA", m.f.lock, "3", m.name, m.state, "fenced:marker",
		m.id, m.f.ttl, m.token, m.f.kept)
	return m.f.ask(m.out)
}

func (m *fencedMutex) Unlock(context.Context) error {
	m.out = resp.AppendCommand(m.out[:0], "EVALSHA", m.f.unlock, "2", m.name, m.state, m.id, m.token, m.f.kept)
	return m.f.ask(m.out)
}
