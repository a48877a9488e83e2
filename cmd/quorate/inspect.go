package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/fault"
)

func inspectCommand() *cobra.Command {
	var t cli.Target
	var asJSON, held bool
	cmd := &cobra.Command{
		Use: "inspect NAME", SuggestFor: []string{"show", "who", "status"},
		Short: "Show who holds a name, who is waiting, and what each node says",
		Long: `Shows which processes hold a name, which are waiting and in which order, what is
recorded, and what each node says. It marks nodes that disagree with a majority.

Inspecting a name does not affect its holders. A holder that is stopped or dead
is shown until its lease expires. SINCE is the time at which a process asked for
the name.

Exit status:
  0   a majority of the nodes answered; with --held: a process holds the name
  1   with --held: no process holds it
  69  too few nodes answered; their answers are printed
  64  the command line is wrong`,
		Example: `  quorate inspect nightly-report
  quorate inspect nightly-report --held >/dev/null && echo "it runs"
  quorate inspect nightly-report --json | jq -r '.holders[].token'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.Asking(func(ctx context.Context, cmd *cobra.Command, q *quorate.Quorum) error {
				r, err := inspect.Name(ctx, q, args[0])
				switch {
				case errors.Is(err, quorate.ErrInvalid):
					return cli.NewExit(cli.ExitUsage, cli.Plain(err))
				case err != nil && r.Name == "":
					return cli.NewExit(cli.ExitNoQuorum, cli.Plain(err))
				case asJSON:
					printJSON(cmd.OutOrStdout(), r)
				default:
					tellName(cmd.OutOrStdout(), &r, err == nil)
				}
				if err != nil {
					return cli.NewExit(cli.ExitNoQuorum, errors.New("too few nodes answered; their answers are printed"))
				}
				if held && len(r.Holders) == 0 && r.Foreign == 0 {
					return &cli.Exit{Code: 1}
				}
				return nil
			})(cmd, args)
		},
	}
	t.NodeFlags(cmd)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&held, "held", false, "exit with 1 if no process holds the name")
	return cmd
}

// tellName prints a report: the holder first, then those that wait, the record
// and the nodes. sure says that a majority could tell.
func tellName(w io.Writer, r *inspect.Report, sure bool) {
	r = cli.Clean(r)
	says := summary(r)
	if !sure {
		says = "the holder is unknown"
	}
	fmt.Fprintf(w, "%s: %s\n", strconv.Quote(r.Name), says)
	if r.Foreign > 0 {
		fmt.Fprintf(w, "Another library holds the key; it expires in %v.\n", r.Foreign.Round(time.Millisecond))
	}
	if all := slices.Concat(r.Holders, r.Waiters); len(all) > 0 {
		fmt.Fprintln(w)
		tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tab, "CLAIM\tPROCESS\tTOKEN\tSINCE\tLEASE LEFT\tVOTES")
		for i := range all {
			what := "holds"
			if i >= len(r.Holders) {
				what = "waits " + strconv.Itoa(i-len(r.Holders)+1)
			}
			fmt.Fprintf(tab, "%s\t%s\t%d\t%s\t%v\t%d\n", what+board.Share(r, &all[i]), board.Claimant(&all[i]),
				all[i].Token, ago(all[i].Since), all[i].Left.Round(time.Millisecond), all[i].Votes)
		}
		_ = tab.Flush()
		if r.More > 0 {
			fmt.Fprintf(w, "and %d more\n", r.More)
		}
		for i := range r.Holders {
			if h := &r.Holders[i]; h.Bare {
				fmt.Fprintf(w, "The hold with token %d depends on a bare majority: it ends if one of the nodes that "+
					"vote for it is restarted.\n", h.Token)
			}
		}
	}
	if r.Record != nil {
		fmt.Fprintf(w, "\nRecorded: %s\n", recorded(r))
	}
	fmt.Fprintln(w)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "NODE\tVOTES FOR\tQUEUED\tDIFFERS")
	for _, n := range r.Nodes {
		if n.Err != nil {
			fmt.Fprintf(tab, "%s\t-\t-\t! %s\n", n.Node, cause(n.Err))
			continue
		}
		differs := strings.Join(n.Differs, "; ")
		if differs != "" {
			differs = "! " + differs
		}
		fmt.Fprintf(tab, "%s\t%s\t%d\t%s\n", n.Node, tokens(n.Tokens), n.Queued, differs)
	}
	_ = tab.Flush()
}

// summary is the first line of a report.
func summary(r *inspect.Report) string {
	kind := cmp.Or(string(r.Kind), "not in use")
	if r.Kind == inspect.Semaphore {
		kind = "semaphore of " + fault.Count(int(r.Capacity), "permit")
	}
	switch {
	case len(r.Holders) == 0 && r.Kind == inspect.None:
		return kind
	case len(r.Holders) == 0:
		return fmt.Sprintf("%s, no process holds it, %d waiting", kind, len(r.Waiters)+r.More)
	case len(r.Holders) == 1:
		return fmt.Sprintf("%s, held by %s, %d waiting", kind, board.Claimant(&r.Holders[0]), len(r.Waiters)+r.More)
	}
	return fmt.Sprintf("%s, held by %d processes, %d waiting", kind, len(r.Holders), len(r.Waiters)+r.More)
}

// recorded describes what is recorded.
func recorded(r *inspect.Report) string {
	c := r.Record
	s := fmt.Sprintf("a value of another program, token %d", c.Token)
	switch r.Kind {
	case inspect.Period:
		s = fmt.Sprintf("last run in the period from %s, token %d", c.At.Local().Format(time.DateTime), c.Token)
	case inspect.Flight:
		s = fmt.Sprintf("loaded at %s, token %d", c.At.Local().Format(time.DateTime), c.Token)
	case inspect.Once:
		s = fmt.Sprintf("done by process %d on %s at %s, token %d", c.PID, c.Host,
			c.At.Local().Format(time.DateTime), c.Token)
	case inspect.Leader:
		leads := "led last"
		if len(r.Holders) > 0 {
			leads = "leads"
		}
		s = fmt.Sprintf("%q %s, process %d on %s since %s, term %d", c.ID, leads, c.PID, c.Host,
			c.At.Local().Format(time.DateTime), c.Token)
		if c.Value != "" {
			s += ", value " + strconv.Quote(c.Value)
		}
	}
	if !c.Until.IsZero() {
		s += ", until " + c.Until.Local().Format(time.DateTime)
	}
	if c.Nodes < r.Quorum {
		s += fmt.Sprintf("; only %d of the %d nodes needed have it", c.Nodes, r.Quorum)
	}
	return s
}

func tokens(all []uint64) string {
	switch len(all) {
	case 0:
		return "-"
	case 1:
		return strconv.FormatUint(all[0], 10)
	}
	return fmt.Sprintf("%d and %d more", all[0], len(all)-1)
}

// ago says how long ago something was. Clocks of nodes and of this machine may
// differ.
func ago(at time.Time) string {
	return max(0, time.Since(at)).Round(time.Millisecond).String() + " ago"
}

func listCommand() *cobra.Command {
	var t cli.Target
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls [PATTERN]", SuggestFor: []string{"list", "names"},
		Short: "List the names that are held, waited for or recorded",
		Long: `Lists the names that are held, waited for or recorded, with their kind, their
first holder and the number of waiters. PATTERN is a Redis pattern such as
'job:*'.

The command reads the nodes' keys in small batches, so it doesn't block a node
even if there are many names. It doesn't affect the holders.

With --json, it prints one JSON document per line for each name, as they come in.

Exit status:
  0   all names are listed
  69  too few nodes could be asked, so names may be missing
  64  the command line is wrong`,
		Example: `  quorate ls
  quorate ls 'job:*' --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, done, err := t.Open(cmd.Context(), io.Discard)
			if err != nil {
				return err
			}
			defer done()
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			began := time.Now()
			err = list(ctx, cmd.OutOrStdout(), q, strings.Join(args, ""), asJSON)
			if took := time.Since(began); took > staleAfter {
				fmt.Fprintf(cmd.ErrOrStderr(), "quorate: the listing took %v, so some entries may be that old\n",
					took.Round(100*time.Millisecond))
			}
			return err
		},
	}
	t.NodeFlags(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// list prints the names: with asJSON as they come, else in order.
func list(ctx context.Context, w io.Writer, q *quorate.Quorum, pattern string, asJSON bool) error {
	var all []inspect.Entry
	var failed error
	for e, err := range inspect.Names(ctx, q, pattern) {
		switch {
		case err != nil:
			failed = cli.NewExit(cli.ExitNoQuorum, cli.Plain(err))
		case asJSON:
			_ = printLine(w, e)
		default:
			all = append(all, e)
		}
	}
	if asJSON {
		return failed
	}
	slices.SortFunc(all, func(a, b inspect.Entry) int { return cmp.Compare(a.Name, b.Name) })
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "NAME\tKIND\tHELD BY\tWAITING")
	for i := range all {
		e := &all[i]
		e.Holder = cli.Clean(e.Holder) // the name is quoted
		holder := "-"
		switch {
		case e.Holder != nil && e.Holders > 1:
			holder = fmt.Sprintf("%s and %d more", board.Claimant(e.Holder), e.Holders-1)
		case e.Holder != nil:
			holder = board.Claimant(e.Holder)
		case e.Record != nil && e.Kind == inspect.Once:
			holder = "done"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%d\n", strconv.Quote(e.Name), cmp.Or(string(e.Kind), "?"), holder, e.Waiters)
	}
	_ = tab.Flush()
	return failed
}
