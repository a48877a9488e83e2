// Package top shows a board in a terminal.
package top

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
)

// Model is what the terminal shows. A [board.View] that is sent to it is shown
// from then on.
type Model struct {
	view          board.View
	seen          bool // a view has come
	width, height int
	chosen        string // the name that the arrows are at
	open          bool   // its queue is shown
	filter        string
	typing        bool // keys go to filter
}

// Init implements [tea.Model].
func (m Model) Init() tea.Cmd { return nil }

// Update implements [tea.Model].
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case board.View:
		m.view, m.seen = msg, true
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if msg.String() == "ctrl+c" || msg.String() == "q" && !m.typing {
			return m, tea.Quit
		}
		m = m.key(msg)
	}
	return m.settle(), nil
}

func (m Model) key(msg tea.KeyPressMsg) Model {
	switch s := msg.String(); {
	case s == "esc" && (m.typing || !m.open):
		m.filter, m.typing = "", false
	case s == "esc":
		m.open = false
	case s == "enter" && m.typing:
		m.typing = false
	case m.typing && s == "backspace":
		runes := []rune(m.filter)
		m.filter = string(runes[:max(0, len(runes)-1)])
	case m.typing && msg.Key().Text != "":
		m.filter += board.Printable(msg.Key().Text)
	case s == "enter":
		m.open = !m.open
	case s == "/":
		m.typing, m.open = true, false
	case s == "up", s == "k":
		m = m.move(-1)
	case s == "down", s == "j":
		m = m.move(1)
	case s == "pgup":
		m = m.move(-10)
	case s == "pgdown":
		m = m.move(10)
	}
	return m
}

// names are those that the filter lets through.
func (m Model) names() []board.Row {
	var all []board.Row
	for _, r := range m.view.Names {
		text := r.Name + " " + r.Kind
		for _, c := range slices.Concat(r.Holders, r.Waiters) {
			text += " " + c.Process
		}
		if strings.Contains(strings.ToLower(text), strings.ToLower(m.filter)) {
			all = append(all, r)
		}
	}
	return all
}

// at is where the chosen name is; -1: it is not there.
func (m Model) at(names []board.Row) int {
	return slices.IndexFunc(names, func(r board.Row) bool { return r.Name == m.chosen })
}

func (m Model) move(by int) Model {
	if names := m.names(); len(names) > 0 {
		m.chosen = names[min(max(0, m.at(names)+by), len(names)-1)].Name
	}
	return m
}

// settle chooses the first name if the chosen one is gone. A queue that is
// shown stays: the name may come back.
func (m Model) settle() Model {
	if names := m.names(); !m.open && len(names) > 0 && m.at(names) < 0 {
		m.chosen = names[0].Name
	}
	return m
}

// View implements [tea.Model].
func (m Model) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen, v.WindowTitle = true, "quorate top"
	return v
}
