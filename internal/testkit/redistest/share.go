package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Share has the tests of m share servers, one test after the other: to start a
// server costs more than most tests do with it. A test that asks [Start] for
// servers without options may get some that another test has given back. They
// are as new: see Server.renew. What Share returns runs m, and closes the
// servers that are left.
func Share(m Tests) Tests { return sharing{m} }

// Tests are a [testing.M], or run one.
type Tests interface{ Run() int }

type sharing struct{ Tests }

func (s sharing) Run() int {
	pool.mu.Lock()
	pool.room = 16
	pool.mu.Unlock()
	defer func() {
		pool.mu.Lock()
		defer pool.mu.Unlock()
		pool.room = 0
		_ = (&Cluster{servers: pool.idle}).Close()
	}()
	return s.Tests.Run()
}

// pool has the servers that tests have given back, the one that has been idle
// for the longest time first.
var pool struct {
	mu   sync.Mutex
	room int // how many it takes
	idle []*Server
}

// take returns up to n servers that no client is connected to.
func take(n int) (taken []*Server) {
	for len(taken) < n {
		pool.mu.Lock()
		if len(pool.idle) == 0 {
			pool.mu.Unlock()
			return taken
		}
		s := pool.idle[0]
		pool.idle = pool.idle[1:]
		pool.mu.Unlock()
		if s.alone() == nil {
			taken = append(taken, s)
		} else {
			_ = s.close()
		}
	}
	return taken
}

// giveBack closes a server for its test. If it is as new, another test may get
// it.
func (s *Server) giveBack() error {
	next := s.successor()
	if next != nil && next.renew() == nil {
		pool.mu.Lock()
		room := len(pool.idle) < pool.room
		if room {
			pool.idle = append(pool.idle, next)
		}
		pool.mu.Unlock()
		if room {
			return nil
		}
	}
	if next != nil {
		return next.close()
	}
	return s.close()
}

// successor takes the process and all that belongs to it from a server that can
// be shared, and closes that one. For another server it returns nil.
func (s *Server) successor() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.own || s.stopped || !s.proc.Running() {
		return nil
	}
	files, err := os.ReadDir(s.host.dir)
	if err != nil || len(files) > 1 { // more than its log: its next life would begin with data
		return nil
	}
	next := &Server{binary: s.binary, port: s.port, host: host{dir: s.host.dir},
		reservation: s.reservation, proc: s.proc}
	if s.client != nil {
		_ = s.client.Close()
	}
	s.closed, s.proc, s.reservation, s.host.dir = true, nil, nil, ""
	return next
}

// harmless are the commands that change nothing but data, scripts and the
// connections of their clients. A server that has carried out another one is
// not shared.
var harmless = func() map[string]bool {
	all := map[string]bool{}
	for _, c := range strings.Fields(`append auth client|getname client|id client|info client|kill client|list client|setinfo client|setname
		config|get dbsize decr del discard dump echo eval evalsha exec exists expire expireat expiretime flushall flushdb
		get getdel getex getrange hdel hello hexists hget hgetall hincrby hlen hmget hset hsetnx incr incrby info keys llen lpop lpush lrange
		memory|usage mget mset multi object|encoding persist pexpire pexpireat pexpiretime ping psetex psubscribe pttl publish
		pubsub|channels pubsub|numsub quit rename restore role rpop rpush sadd scan scard script|exists script|flush script|load select
		set setex setnx setrange sismember smembers srem strlen subscribe time touch ttl type unlink unsubscribe unwatch watch
		zadd zcard zcount zincrby zrange zrangebyscore zrank zrem zremrangebyrank zremrangebyscore zrevrange zrevrank zscore`) {
		all[c] = true
	}
	return all
}()

// renew resets a server's statistics, and then carries out a command that no
// test does: a reset by a test has the statistics forget it.
const reset, mark = "config|resetstat", "lastsave"

// renew has a server forget its data, its scripts, its clients and its
// statistics. It fails if the server has more to forget.
func (s *Server) renew() error {
	return s.ask(func(ctx context.Context, c *redis.Client) error {
		stats, err := c.InfoMap(ctx, "commandstats").Result()
		if err != nil {
			return err
		}
		done := stats["Commandstats"]
		if _, marked := done["cmdstat_"+mark]; marked {
			delete(done, "cmdstat_"+mark)
			delete(done, "cmdstat_"+reset)
		}
		for name := range done {
			if !harmless[strings.TrimPrefix(name, "cmdstat_")] {
				return fmt.Errorf("redistest: %s has carried out %s", s.Addr(), name)
			}
		}
		pipe := c.Pipeline()
		for _, kind := range []string{"normal", "pubsub"} {
			pipe.Do(ctx, "CLIENT", "KILL", "TYPE", kind)
		}
		pipe.FlushAll(ctx)
		pipe.ScriptFlush(ctx)
		pipe.ConfigResetStat(ctx)
		pipe.LastSave(ctx)
		_, err = pipe.Exec(ctx)
		return err
	})
}

// alone fails if a server has data, or a client but for the one that asks.
func (s *Server) alone() error {
	return s.ask(func(ctx context.Context, c *redis.Client) error {
		pipe := c.Pipeline()
		clients, keys := pipe.ClientList(ctx), pipe.DBSize(ctx)
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		if strings.Count(clients.Val(), "\n") != 1 || keys.Val() > 0 {
			return errors.New("redistest: another client uses the server")
		}
		return nil
	})
}

// ask calls f with a client of one connection.
func (s *Server) ask(f func(context.Context, *redis.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	o := s.clientOptions()
	o.PoolSize, o.MaxRetries = 1, -1
	c := redis.NewClient(o)
	defer func() { _ = c.Close() }()
	return f(ctx, c)
}
