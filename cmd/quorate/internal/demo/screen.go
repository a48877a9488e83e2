package demo

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// style is how things are drawn.
type style struct {
	colours                               bool
	block, dot, dash, cross, yes, no, cut string
}

var (
	unicodeStyle = style{block: "█", dot: "·", dash: "─", cross: "✗", yes: "✓", no: "✗", cut: "…"}
	asciiStyle   = style{block: "#", dot: ".", dash: "-", cross: "X", yes: "ok", no: "WRONG", cut: ".."}
)

// styleFor looks at the environment: a C locale shows no more than ASCII.
func styleFor(tty bool, getenv func(string) string) style {
	st := unicodeStyle
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			if v == "C" || v == "POSIX" {
				st = asciiStyle
			}
			break
		}
	}
	st.colours = tty && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return st
}

func (st *style) paint(code, s string) string {
	if !st.colours {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (st *style) red(s string) string   { return st.paint("1;31", s) }
func (st *style) green(s string) string { return st.paint("32", s) }
func (st *style) bold(s string) string  { return st.paint("1", s) }
func (st *style) dim(s string) string   { return st.paint("2", s) }

func (st *style) worker(w int, s string) string {
	return st.paint([]string{"36", "33", "35", "32", "34"}[w%5], s)
}

// screen prints lines as they come and, on a terminal, keeps the timeline below
// them.
type screen struct {
	w     io.Writer
	file  *os.File // nil: not a terminal
	style style
	below int // lines of the timeline that stand below
}

func newScreen(w io.Writer) *screen {
	s := &screen{w: w}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		s.file = f
	}
	s.style = styleFor(s.file != nil, os.Getenv)
	return s
}

// width is how wide the timeline may be.
func (s *screen) width() int {
	if s.file != nil {
		if w, _, err := term.GetSize(int(s.file.Fd())); err == nil {
			return min(w-1, 118)
		}
	}
	return 98
}

// print prints a line above the timeline, which is gone until show.
func (s *screen) print(format string, args ...any) {
	s.clear()
	fmt.Fprintf(s.w, format+"\n", args...)
}

// live reports whether there is a terminal to draw on again and again.
func (s *screen) live() bool { return s.file != nil }

// show draws the timeline below, if the terminal is high enough.
func (s *screen) show(lines []string) {
	w, h, err := term.GetSize(int(s.file.Fd()))
	if err != nil || h < len(lines)+6 || w < margin+24 {
		return
	}
	fmt.Fprint(s.w, s.up()+"\n"+strings.Join(lines, "\n")+"\n") // at once, or it flickers
	s.below = len(lines) + 1
}

// clear takes the timeline away.
func (s *screen) clear() {
	if s.below > 0 {
		fmt.Fprint(s.w, s.up())
		s.below = 0
	}
}

// up goes to where the timeline begins and erases it.
func (s *screen) up() string {
	if s.below == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", s.below)
}
