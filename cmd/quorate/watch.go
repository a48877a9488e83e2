package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/inspect"
)

func watchCommand() *cobra.Command {
	var t cli.Target
	var asJSON bool
	cmd := &cobra.Command{
		Use: "watch NAME", SuggestFor: []string{"follow", "tail"},
		Short: "Print a line whenever the holder or the waiters of a name change",
		Long: `Prints the holder of a name, its token and the number of waiters, and then a line
whenever these change, until interrupted.

Watching does not claim the name or affect its holders. The command asks the
nodes up to five times a second, so it can miss a shorter hold. If too few nodes
answer, it says so and continues.

With --json each line is what "quorate inspect --json" prints, with the time
in "at" and, if too few nodes answered, the reason in "err".

Exit status:
  0   ended by SIGINT or SIGTERM
  64  the command line is wrong`,
		Example: `  quorate watch nightly-report
  quorate watch nightly-report --json | jq -r '.holders[].token'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, done, err := t.Open(cmd.Context(), io.Discard)
			if err != nil {
				return err
			}
			defer done()
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			for r, err := range inspect.Watch(ctx, q, args[0]) {
				if errors.Is(err, quorate.ErrInvalid) {
					return cli.NewExit(cli.ExitUsage, cli.Plain(err))
				}
				if printSight(cmd.OutOrStdout(), time.Now(), &r, err, asJSON) != nil {
					return nil // execute reports that the output could not be written
				}
			}
			return nil
		},
	}
	t.NodeFlags(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// printSight prints one report of a watch as a line. err says that too few
// nodes answered.
func printSight(w io.Writer, at time.Time, r *inspect.Report, err error, asJSON bool) error {
	if asJSON {
		fields := plainValue(reflect.ValueOf(*r)).(map[string]any)
		fields["at"] = at
		if err != nil {
			fields["err"] = plainValue(reflect.ValueOf(err))
		}
		return printLine(w, fields)
	}
	of := fmt.Sprintf("watch %q: ", r.Name)
	r = cli.Clean(r)
	says := "free"
	switch n := len(r.Holders); {
	case err != nil:
		says = "unknown: " + cli.Cell(strings.TrimPrefix(cause(cli.Plain(err)), of))
	case n > 0:
		says = fmt.Sprintf("%s%s, token %d", board.Claimant(&r.Holders[0]),
			board.Share(r, &r.Holders[0]), r.Holders[0].Token)
		if n > 1 {
			says += fmt.Sprintf(", and %d more", n-1)
		}
	case r.Foreign > 0:
		says = "another library"
	case r.Kind == inspect.Once && r.Record != nil:
		says = "done"
	}
	if err == nil {
		says += fmt.Sprintf(", %d waiting", len(r.Waiters)+r.More)
	}
	_, err = fmt.Fprintf(w, "%s  %s\n", at.Local().Format(time.DateTime+".000"), says)
	return err
}

// Bounds of one round of a watcher.
const (
	mostListed = 1000 // names that are listed; the listing goes on in the next round
	// How many names are inspected closely, in this listing and the previous
	// one.
	mostFollowed = board.MostNames / 2
	looksAtOnce  = 16
	listFor      = 2 * time.Second // the listing goes on in the next round
	staleAfter   = 3 * time.Second // what is shown says how old it is, if it is older than that and the pause
)

// listed is an element of a listing.
type listed struct {
	entry inspect.Entry
	err   error
}

// A watcher observes the nodes and the names, round after round.
type watcher struct {
	q       *quorate.Quorum
	pattern string

	listing chan listed // that is under way; nil: none is
	stop    func()
	listed  int             // names of it
	found   []inspect.Entry // those of it that are most in demand
	before  []inspect.Entry // those of the listing before
	total   int             // names of that
	counted bool            // one has ended
}

// watch observes until ctx ends, with a pause of every between two rounds, and
// shows what a board makes of it. While a round takes long it shows the last
// view again, with its age.
func watch(ctx context.Context, q *quorate.Quorum, pattern string,
	every time.Duration, show func(board.View)) {
	w := &watcher{q: q, pattern: pattern}
	defer w.end()
	b := board.New()
	for ctx.Err() == nil {
		round := make(chan board.Observation, 1)
		go func() { round <- w.round(ctx) }()
		b.Observe(await(round, b.View(), every, show))
		if ctx.Err() != nil {
			return
		}
		show(b.View())
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
	}
}

// await waits for the end of a round, and shows the last view with its age
// meanwhile.
func await(round <-chan board.Observation, last board.View, every time.Duration,
	show func(board.View)) board.Observation {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case o := <-round:
			return o
		case now := <-tick.C:
			if age := now.Sub(last.At); !last.At.IsZero() && age > staleAfter+every {
				show(last.Aged(age))
			}
		}
	}
}

// end ends the listing that is under way.
func (w *watcher) end() {
	if w.listing != nil {
		w.stop()
		for range w.listing {
		}
	}
	w.listing = nil
}

// begin begins a listing.
func (w *watcher) begin(ctx context.Context) {
	ctx, w.stop = context.WithCancel(ctx)
	all := make(chan listed)
	w.listing, w.listed, w.found = all, 0, nil
	go func() {
		defer close(all)
		for e, err := range inspect.Names(ctx, w.q, w.pattern) {
			select {
			case all <- listed{e, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
}

func (w *watcher) round(ctx context.Context) board.Observation {
	var o board.Observation
	var all sync.WaitGroup
	all.Go(func() {
		asked, cancel := context.WithTimeout(ctx, cli.Patience)
		defer cancel()
		r, _ := w.q.Check(asked) // the report says what is wrong
		o.Nodes, o.Quorum, o.Ready, o.Joined = boardNodes(r), r.Quorum, r.Ready, joined(r)
	})
	began := w.listing == nil
	ended, err := w.list(ctx)
	if err != nil {
		o.Trouble = cli.InFlags(cli.Plain(err).Error())
	}
	o.Whole = began && ended && err == nil && w.total <= mostFollowed
	o.Names = w.look(ctx)
	if ended {
		w.before = w.found
	}
	all.Wait()
	o.At, o.Total, o.Counted = time.Now(), max(w.total, w.listed), w.counted
	return o
}

// list goes on with the listing, for listFor at most. It reports whether that
// has come to its end.
func (w *watcher) list(ctx context.Context) (ended bool, err error) {
	if w.listing == nil {
		w.begin(ctx)
	}
	late := time.After(listFor)
	for range mostListed {
		select {
		case l, more := <-w.listing:
			switch {
			case !more:
				w.end()
				w.found = foremost(w.found)
				w.total, w.counted = w.listed, true
				return true, nil
			case l.err != nil:
				w.end()
				return false, l.err
			}
			w.listed++
			if w.found = append(w.found, l.entry); len(w.found) >= 2*mostFollowed {
				w.found = foremost(w.found)
			}
		case <-late:
			return false, nil
		}
	}
	return false, nil
}

// foremost returns the names that are most in demand.
func foremost(all []inspect.Entry) []inspect.Entry {
	slices.SortFunc(all, func(a, b inspect.Entry) int {
		return cmp.Or(b.Waiters-a.Waiters, b.Holders-a.Holders, cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), mostFollowed)]
}

// look looks closely at the names that are most in demand, and at those that
// were before.
func (w *watcher) look(ctx context.Context) []board.Look {
	names := map[string]bool{}
	for _, e := range slices.Concat(foremost(w.found), w.before) {
		names[e.Name] = true
	}
	ctx, cancel := context.WithTimeout(ctx, cli.Patience)
	defer cancel()
	looks := make([]board.Look, 0, len(names))
	var mu sync.Mutex
	var all sync.WaitGroup
	room := make(chan struct{}, looksAtOnce)
	for name := range names {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			r, err := inspect.Name(ctx, w.q, name)
			r.Name = name
			for i := range r.Nodes {
				if e := r.Nodes[i].Err; e != nil {
					r.Nodes[i].Err = errors.New(cause(e))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			looks = append(looks, board.Look{At: time.Now(), Report: r, Unsure: err != nil})
		})
	}
	all.Wait()
	return looks
}

// boardNodes tells of the nodes in the words of check.
func boardNodes(r quorate.Report) []board.Node {
	nodes := make([]board.Node, len(r.Nodes))
	for i := range r.Nodes {
		n := &r.Nodes[i]
		nodes[i] = board.Node{Name: n.Node, State: state(n), Up: n.Err == nil, Recovering: n.Recovering.Seconds()}
		if err := cmp.Or(n.Err, n.Refuses); err != nil {
			nodes[i].Cause = cause(err)
		}
	}
	return nodes
}
