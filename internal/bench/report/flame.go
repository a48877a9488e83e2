package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// Frame is a function in a flame graph. Its caller is the last frame before it
// with a depth one less. The first frame, at depth 0, stands for everything.
type Frame struct {
	depth   int
	samples int    // including the samples of the functions it called
	kind    string // see kinds
	name    string // package.func
}

// MarshalText makes a frame one line.
func (f Frame) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%d %d %s %s", f.depth, f.samples, f.kind, f.name), nil
}

func (f *Frame) UnmarshalText(text []byte) error {
	parts := strings.SplitN(string(text), " ", 4)
	if len(parts) < 4 {
		return fmt.Errorf("no frame of a flame graph: %q", text)
	}
	f.kind, f.name = parts[2], parts[3]
	var err, err2 error
	f.depth, err = strconv.Atoi(parts[0])
	f.samples, err2 = strconv.Atoi(parts[1])
	return cmp.Or(err, err2)
}

// The kinds of code, by the prefix of a function's name. Everything else is
// otherCode.
const (
	libraryCode = "quorate"
	systemCode  = "system"
	runtimeCode = "runtime"
	otherCode   = "other"
)

var kinds = []struct{ kind, prefix string }{
	{libraryCode, "github.com/quorate/quorate/"},
	{systemCode, "net."}, {systemCode, "internal/poll."}, {systemCode, "syscall."},
	{systemCode, "internal/syscall/"},
	{systemCode, "internal/runtime/syscall"}, {systemCode, "runtime.futex"},
	{runtimeCode, "runtime."}, {runtimeCode, "internal/runtime/"}, {runtimeCode, "runtime/"},
}

func kindOf(function string) string {
	for _, k := range kinds {
		if strings.HasPrefix(function, k.prefix) {
			return k.kind
		}
	}
	return otherCode
}

// short returns a function's name without the path of its package and without
// type arguments.
func short(function string) string {
	if i, j := strings.IndexByte(function, '['), strings.LastIndexByte(function, ']'); i >= 0 && j > i {
		function = function[:i] + "[…]" + function[j+1:]
	}
	return function[strings.LastIndexByte(function, '/')+1:]
}

const (
	maxFrames = 40  // per stack, including the first one, which stands for everything
	leastPart = 100 // a frame with less than 1/leastPart of all samples is merged
	merged    = "…"
)

// calls is a tree of calls: a function's samples, and the functions that it
// called.
type calls struct {
	samples int
	of      map[string]*calls // by the function's full name
}

func (c *calls) add(stack []string, samples int) {
	c.samples += samples
	if len(stack) == 0 {
		return
	}
	if c.of == nil {
		c.of = map[string]*calls{}
	}
	if c.of[stack[0]] == nil {
		c.of[stack[0]] = &calls{}
	}
	c.of[stack[0]].add(stack[1:], samples)
}

// FlameOf returns the flame graph of a CPU profile, or nil if the profile is
// empty. Equal profiles have equal graphs. Calls deeper than maxFrames count
// for their callers. Frames that are too small are merged into one, or dropped
// if that is too small as well.
func FlameOf(p *profile.Profile) []Frame {
	all := &calls{}
	for _, s := range p.Sample {
		var stack []string
		for _, at := range slices.Backward(s.Location) {
			for _, line := range slices.Backward(at.Line) {
				if line.Function != nil && line.Function.Name != "runtime.goexit" {
					stack = append(stack, line.Function.Name)
				}
			}
		}
		all.add(stack[:min(len(stack), maxFrames-1)], int(s.Value[0]))
	}
	if all.samples == 0 {
		return nil
	}
	return all.frames(Frame{samples: all.samples, kind: otherCode, name: "all"}, all.samples)
}

// frames lists c as frame f, followed by the functions that it called.
func (c *calls) frames(f Frame, total int) []Frame {
	list, small := []Frame{f}, 0
	for _, name := range slices.SortedFunc(maps.Keys(c.of), func(a, b string) int {
		return cmp.Or(strings.Compare(short(a), short(b)), strings.Compare(a, b))
	}) {
		of := c.of[name]
		if of.samples*leastPart < total {
			small += of.samples
			continue
		}
		list = append(list, of.frames(Frame{f.depth + 1, of.samples, kindOf(name), short(name)}, total)...)
	}
	if small*leastPart >= total {
		list = append(list, Frame{f.depth + 1, small, otherCode, merged})
	}
	return list
}
