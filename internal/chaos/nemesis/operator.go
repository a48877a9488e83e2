package nemesis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/chaos/client"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/core"
	changing "github.com/quorate/quorate/internal/operator"
	"github.com/quorate/quorate/internal/testkit/worker"
	"github.com/quorate/quorate/members"
)

// operatorEnv names the variable that holds an operator's orders. A process in
// which it is set is an operator: it exchanges nodes once, with the public API,
// and exits.
const operatorEnv = "QUORATE_CHAOS_OPERATOR"

// Orders tell an operator what to do: add nodes, remove nodes, both, or undo an
// exchange.
type Orders struct {
	Terms       client.Terms
	Add, Remove []string // addresses
	Undo        bool
	Within      time.Duration
}

func (o *Orders) String() string {
	if o.Undo {
		return "undo"
	}
	return strings.TrimSpace(fmt.Sprintf("add %v remove %v", o.Add, o.Remove))
}

// The lines that an operator writes when it ends.
const (
	sayFailed = "failed " // why
	saySet    = "set"     // followed by the addresses of the set, as the operator knows it
)

// AsOperator runs an operator's main if this process is an operator, and
// returns its exit status.
func AsOperator() (isOperator bool, status int) {
	var o Orders
	isOperator, err := worker.Terms(operatorEnv, &o)
	if !isOperator {
		return false, 0
	}
	if err == nil {
		go func() { // the operator ends with the harness
			for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			}
			os.Exit(record.ExitVoid)
		}()
		err = o.carryOut()
	}
	if err != nil {
		fmt.Println(sayFailed + strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return true, 0
}

func (o *Orders) carryOut() error {
	if err := o.Terms.Omit(); err != nil {
		return err
	}
	e := &client.Env{Terms: o.Terms}
	if err := e.Connect(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.Within)
	defer cancel()
	err := o.exchange(ctx, e.Quorum)
	// The set was known when the exchange began.
	known, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	if l, gerr := members.Get(known, e.Quorum); gerr == nil {
		say := []string{saySet}
		for _, m := range l.Members {
			say = append(say, m.Addr)
		}
		fmt.Println(strings.Join(say, " "))
	}
	_ = e.Quorum.Close() // a node that is cut off may not have confirmed the last releases
	return err
}

func (o *Orders) exchange(ctx context.Context, q *quorate.Quorum) error {
	switch {
	case o.Undo:
		return members.Undo(ctx, q)
	case len(o.Add) == 0:
		return members.Remove(ctx, q, o.Remove...)
	case len(o.Remove) == 0:
		return members.Add(ctx, q, o.Add...)
	case len(o.Add) == 1 && len(o.Remove) == 1:
		return members.Replace(ctx, q, o.Remove[0], o.Add[0])
	}
	return changing.Run(ctx, core.CoreOf(q), changing.Exchange{Add: o.Add, Remove: o.Remove})
}

// operator is an operator process, as the harness sees it.
type operator struct {
	*worker.Worker
	mu  sync.Mutex
	set []string
	err error
}

func startOperator(o Orders) (*operator, error) {
	cmd, err := worker.Self(operatorEnv, o)
	if err != nil {
		return nil, err
	}
	p := &operator{}
	p.Worker, err = worker.Start(cmd, p.take)
	return p, err
}

func (p *operator) take(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if why, ok := strings.CutPrefix(line, sayFailed); ok {
		p.err = errors.New(why)
	} else if f := strings.Fields(line); len(f) > 0 && f[0] == saySet {
		p.set = f[1:]
	}
}

// wait returns the set as the operator has left it. The operator is killed when
// ctx ends.
func (p *operator) wait(ctx context.Context) (set []string, err error) {
	select {
	case <-p.Done():
	case <-ctx.Done():
		err = errors.Join(ctx.Err(), p.Kill())
		<-p.Done()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err = errors.Join(err, p.err, p.Failure())
	if err == nil && len(p.set) == 0 {
		err = errors.New("the operator has ended without a word")
	}
	return p.set, err
}
