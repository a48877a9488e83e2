package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/setup"
)

// Target is what the flags say about the nodes and the lease.
type Target struct {
	nodes   string
	prefix  string
	config  string
	owner   string
	ttl     time.Duration
	Guard   time.Duration // 0: it is not given; so with retention and skew
	dev     bool          // one node, with short leases
	guarded bool          // --guard is this process's, and not what the set is to have
	access  access
	flags   *pflag.FlagSet

	Quiet bool // say only why the command fails

	// The nodes of Open, in the order of the list.
	Clients []redis.UniversalClient
	Names   []string

	retention, skew time.Duration
}

func (t *Target) NodeFlags(cmd *cobra.Command) {
	connectionFlags(cmd, func(f *pflag.FlagSet) {
		f.StringVar(&t.nodes, "nodes", "",
			"addresses of the nodes, separated by commas: host:port, redis://…, rediss://…, redis+cluster://…, "+
				"rediss+cluster://… or unix:///path, all with the same database number. Other users of this machine "+
				"can see passwords given here, so use $QUORATE_NODES or --password-file for those "+
				"(default: $QUORATE_NODES)")
		f.StringVar(&t.config, "config", "",
			"YAML file with any of "+strings.Join(shared, ", ")+" (default: $QUORATE_CONFIG)")
		f.StringVar(&t.prefix, "prefix", "quorate",
			"prefix of Quorate's keys in Redis; use the same in all clients")
		t.access.flags(f)
	})
	t.flags = cmd.Flags()
}

func (t *Target) GuardFlag(cmd *cobra.Command, what string) {
	t.guarded = true
	connectionFlags(cmd, func(f *pflag.FlagSet) {
		f.DurationVar(&t.Guard, "guard", 0, "how long a node waits after a restart before it votes"+what)
	})
}

// SharedFlags are the settings of a set. The guard time is one, so --guard is
// shown with the others.
func (t *Target) SharedFlags(cmd *cobra.Command, retention, skew string) {
	cmd.Flags().Lookup("guard").Annotations = nil
	cmd.Flags().DurationVar(&t.retention, "retention", 0,
		"how long a node remembers the last ticket of an unused name (default: "+retention+")")
	cmd.Flags().DurationVar(&t.skew, "skew", 0, "how far the nodes' clocks may differ (default: "+skew+")")
}

func (t *Target) LeaseFlags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&t.ttl, "ttl", 8*time.Second, "how long the lock stays held after its holder dies")
	cmd.Flags().BoolVar(&t.dev, "dev", false,
		"development mode for one Redis on your machine: restarting it costs 2s instead of 20s")
	cmd.MarkFlagsMutuallyExclusive("dev", "ttl")
	cmd.Flags().StringVar(&t.owner, "owner", "",
		"label of this process in \"quorate inspect\", such as the name of a pod or job (default: $QUORATE_OWNER)")
}

// nodesVariable is the environment variable with the nodes' URLs.
const nodesVariable = "QUORATE_NODES"

// list returns the nodes' addresses as the user gave them.
func (t *Target) list() ([]string, error) {
	if err := t.resolve(); err != nil {
		return nil, err
	}
	if strings.Trim(t.nodes, ", \t\r\n") == "" {
		return nil, NewExit(ExitUsage,
			errors.New(`no nodes: pass --nodes host:port,… or set QUORATE_NODES; "quorate nodes" starts some to try things out`))
	}
	return []string{t.nodes}, nil
}

func (t *Target) options(stderr io.Writer) []quorate.Option {
	if t.dev {
		t.ttl = setup.DevelopmentTTL
	}
	all := []quorate.Option{
		quorate.WithTTL(t.ttl),
		quorate.WithNodeTimeout(min(200*time.Millisecond, max(t.ttl/4, time.Millisecond))),
		quorate.WithPrefix(t.prefix),
		quorate.WithOwner(t.owner),
		core.Option(func(s *setup.Settings) { s.Prepare = t.access.prepare }).(quorate.Option),
		quorate.WithLogger(slog.New(&plainLog{w: t.Notes(stderr)})),
	}
	// What is not given is the set's. For a set that this process records it is
	// the library's default.
	if t.Guard != 0 {
		all = append(all, quorate.WithGuard(t.Guard))
	}
	if t.retention != 0 || t.Guard > 5*time.Minute {
		all = append(all, quorate.WithRetention(cmp.Or(t.retention, t.Guard)))
	}
	if t.skew != 0 {
		all = append(all, quorate.WithSkew(t.skew))
	}
	if t.dev {
		all = append(all, quorate.ForDevelopment())
	}
	return all
}

// Notes is where to write what is no failure: nowhere with --quiet.
func (t *Target) Notes(stderr io.Writer) io.Writer {
	if t.Quiet {
		return io.Discard
	}
	return stderr
}

// Connect waits for a majority of the nodes until ctx ends.
func (t *Target) Connect(ctx context.Context, stderr io.Writer) (*quorate.Quorum, error) {
	list, err := t.list()
	if err != nil {
		return nil, err
	}
	q, err := quorate.Connect(ctx, list, t.options(stderr)...)
	if errors.Is(err, quorate.ErrInvalid) {
		return nil, NewExit(ExitUsage, Plain(err))
	}
	return q, err
}

// Open does not wait, for it is there to ask about nodes that may be down. It
// only looks: blank nodes record no set for it.
func (t *Target) Open(ctx context.Context, stderr io.Writer) (*quorate.Quorum, func(), error) {
	list, err := t.list()
	if err != nil {
		return nil, nil, err
	}
	nodes, err := setup.ParseNodes(list)
	if err != nil {
		return nil, nil, NewExit(ExitUsage, err)
	}
	var clients []redis.UniversalClient
	var names []string
	closeAll := func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}
	t.ttl = time.Second // nothing is locked, so any will do that suits the guard time
	for _, o := range nodes {
		if err := o.Prepare(t.access.prepare); err != nil {
			closeAll()
			return nil, nil, NewExit(ExitUsage, err)
		}
		o.DialTimeout, o.ReadTimeout = 2*time.Second, 2*time.Second
		o.MaxRetries, o.DialerRetries = -1, 1
		clients, names = append(clients, o.Client()), append(names, o.Name())
	}
	t.Clients, t.Names = clients, names
	q, err := quorate.New(clients, append(t.options(stderr), quorate.WithNodeNames(names...), looksOnly)...)
	if err != nil {
		closeAll()
		return nil, nil, NewExit(ExitUsage, Plain(err))
	}
	return q, func() { End(q); closeAll() }, nil
}

var looksOnly = core.Option(func(s *setup.Settings) { s.LooksOnly = true }).(quorate.Option)

// Asking returns a command that asks all nodes one thing. Its context ends
// after patience, since a node may not answer. What the library logs is left
// out: the command prints the same.
func (t *Target) Asking(do func(ctx context.Context, cmd *cobra.Command,
	q *quorate.Quorum) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		q, done, err := t.Open(cmd.Context(), io.Discard)
		if err != nil {
			return err
		}
		defer done()
		ctx, cancel := context.WithTimeout(cmd.Context(), Patience)
		defer cancel()
		return do(ctx, cmd, q)
	}
}

// End closes q. A repair of a node that lost its data, which the connection
// began, is tried first: a fleet may consist of nothing but short commands.
func End(q *quorate.Quorum) {
	core.CoreOf(q).AwaitRepairs(context.Background())
	_ = q.Close()
}

// Plain takes off the library's own prefix: ours says the same.
func Plain(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "quorate: "))
}

// plainLog is a slog.Handler for a person at a terminal: the few things that
// the library has to tell, without time and level.
type plainLog struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *plainLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l *plainLog) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *plainLog) WithGroup(string) slog.Handler                    { return l }

// unsaid are lines that a command leaves out. It says itself that the lock is
// lost. A node that is down matters only if too few are left, and the line or
// the error about that names each node: a command that succeeds says nothing,
// as cron mails what it says. The documented rights do not include CONFIG GET,
// which tells what a node saves.
var unsaid = []string{"node is down", "a hold was lost", "cannot tell whether a node has saved"}

func (l *plainLog) Handle(_ context.Context, r slog.Record) error {
	if slices.ContainsFunc(unsaid, func(line string) bool { return strings.Contains(r.Message, line) }) {
		return nil
	}
	var attrs []string
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a.Key+" "+Cell(a.Value.String()))
		return true
	})
	text := r.Message
	if len(attrs) > 0 {
		text += " (" + strings.Join(attrs, ", ") + ")"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprintln(l.w, InFlags(text))
	return err
}

// WithoutNodes returns an environment that does not name the nodes: their URLs
// contain passwords, and only a command that uses the nodes itself needs them.
func WithoutNodes(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env),
		func(v string) bool { return strings.HasPrefix(v, nodesVariable+"=") })
}

// Patience bounds what concerns every node, also one that does not answer.
const Patience = 5 * time.Second
