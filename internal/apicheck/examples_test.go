package apicheck

import (
	"go/doc"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trivial are the functions and methods without an example, and where to look
// instead.
var trivial = map[string]string{
	"quorate.Error.Error": "it implements error", "quorate.Error.Unwrap": "errors.As calls it",
	"quorate.EventKind.String": "it implements fmt.Stringer", "quorate.WithTTL": "Connect, settings",
	"quorate.WithGuard": "Connect, settings",
	"quorate.WithSkew":  "Connect, settings", "quorate.WithRetention": "Connect, settings",
	"quorate.WithPrefix":      "Connect, settings",
	"quorate.WithNodeTimeout": "Connect, settings", "quorate.WithLogger": "Connect, settings",

	"mutex.New": "the package's example", "mutex.Mutex.Lock": "the package's example",
	"mutex.Mutex.Unlock": "the package's example",

	"mutex.Group.LockContext": "All", "mutex.Group.TryLockContext": "All",
	"mutex.Group.Unlock": "All", "mutex.Group.Lease": "All",
	"mutex.Group.UnlockContext": "Mutex.UnlockContext", "mutex.Group.Extend": "Mutex.Extend",

	"rwmutex.New": "the package's example", "rwmutex.RWMutex.Lock": "Downgrade",
	"rwmutex.RWMutex.RUnlock": "RLock", "rwmutex.RWMutex.TryLock": "the package's example",
	"rwmutex.RWMutex.TryRLock":       "the package's example",
	"rwmutex.RWMutex.LockContext":    "RLockContext",
	"rwmutex.RWMutex.TryLockContext": "TryRLockContext", "rwmutex.RWMutex.Do": "RDo",
	"rwmutex.RWMutex.UnlockContext": "mutex", "rwmutex.RWMutex.RUnlockContext": "mutex",
	"rwmutex.RWMutex.Lease":  "RLease",
	"rwmutex.RWMutex.Extend": "mutex", "rwmutex.RWMutex.RExtend": "mutex",

	"semaphore.NewWeighted": "the package's example", "semaphore.Weighted.TryAcquire": "the package's example",
	"semaphore.Weighted.Release": "the package's example",
	"semaphore.Weighted.Size":    "Resize", "semaphore.Lease.LogValue": "a logger calls it",
	"semaphore.Lease.Token": "AcquireLease", "semaphore.Lease.Context": "AcquireLease",
	"semaphore.Lease.ValidUntil": "quorate.Lease", "semaphore.Lease.Wanted": "quorate.Lease",
	"semaphore.Lease.Release": "AcquireLease",

	"once.New": "the package's example", "once.State.String": "it implements fmt.Stringer",
	"once.KeepFor": "ValueContext",

	"period.New": "the package's example", "period.Period.Wait": "the package's example",
	"period.Lease": "Start", "period.WithRetry": "Do",
	"period.WithZone": "NewScheduled", "period.WithCatchUp": "NewScheduled", "period.WithOffset": "WithZone",
	"period.State.String": "it implements fmt.Stringer",

	"flight.New": "the package's example", "flight.Group.Do": "the package's example",

	"shards.New": "the package's example", "shards.Shards.Run": "the package's example",

	"members.Replace": "the package's example",

	"quorate.WithNodeNames": "docs/reference/settings.md", "quoratetest.New": "the package's example",
	"quoratetest.Cluster.Quorum":  "the package's example",
	"quoratetest.Cluster.Holders": "the package's example",
	"quoratetest.Cluster.Stop":    "docs/learn/testing.md", "quoratetest.Cluster.Start": "docs/learn/testing.md",
	"quoratetest.Cluster.Forget":    "docs/learn/testing.md",
	"quoratetest.Cluster.Partition": "docs/learn/testing.md",
	"quoratetest.Cluster.Delay":     "docs/learn/testing.md",

	"leader.New": "the package's example", "leader.WithID": "the package's example",
	"leader.WithValue": "Observe", "leader.WithOneTerm": "Run", "leader.WithPriority": "Outranked",
	"leader.Election.ID": "it returns what New was given", "leader.Election.Resign": "Campaign",
}

// Each function and method has an example, unless it is trivial.
func TestExamples(t *testing.T) {
	known := map[string]bool{}
	for _, dir := range public {
		s := sourceOf(t, dir)
		check := func(name string, examples []*doc.Example) {
			name = s.doc.Name + "." + name
			known[name] = true
			_, is := trivial[name]
			assert.False(t, is && len(examples) > 0,
				"%s has an example, so take it from the list of trivial functions", name)
			assert.True(t, is || len(examples) > 0, "%s has no example", name)
		}
		for _, f := range s.doc.Funcs {
			check(f.Name, f.Examples)
		}
		for _, typ := range s.doc.Types {
			for _, f := range typ.Funcs {
				check(f.Name, f.Examples)
			}
			for _, f := range typ.Methods {
				check(typ.Name+"."+f.Name, f.Examples)
			}
		}
	}
	for name := range trivial {
		assert.True(t, known[name], "there is no %s", name)
	}
}

// An example stands alone: what go doc shows of it is a program that a user can
// compile, without helpers of a test and without internal packages.
func TestExamplesStandAlone(t *testing.T) {
	runs := 0
	for _, dir := range public {
		d := sourceOf(t, dir).doc
		all := slices.Clone(d.Examples)
		for _, f := range d.Funcs {
			all = append(all, f.Examples...)
		}
		for _, typ := range d.Types {
			all = append(all, typ.Examples...)
			for _, f := range slices.Concat(typ.Funcs, typ.Methods) {
				all = append(all, f.Examples...)
			}
		}
		require.NotEmpty(t, all, dir)
		for _, e := range all {
			name := d.Name + ".Example" + e.Name
			assert.NotEmpty(t, e.Doc, "%s: what does it show?", name)
			if e.Output != "" {
				runs++
			}
			if !assert.NotNil(t, e.Play, "%s uses what stands elsewhere", name) {
				continue
			}
			for _, imp := range e.Play.Imports {
				assert.False(t, strings.Contains(imp.Path.Value, "/internal/"),
					"%s imports %s, which users cannot", name, imp.Path.Value)
			}
		}
	}
	assert.Greater(t, runs, 40, "most of them run")
}
