package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// mark is a mark while the node that it marks is being searched, from the
// outside in.
type mark struct {
	*file
	line     int
	end      token.Pos // where the comment begins
	on       string    // an expression: its rules are on
	value    string
	place    int
	constant bool
	done     bool
}

// begins reports whether n is the first node on the line.
func (m *mark) begins(n ast.Node) bool {
	if m.tree.Line(n.Pos()) != m.line {
		return false
	}
	before := strings.TrimSpace(m.between(m.tree.LineStart(m.line), n.Pos()))
	return before == "" || before == "} else" // else if
}

// alone reports whether nothing follows n on the line except what continues or
// closes.
func (m *mark) alone(n ast.Node) bool {
	return n.End() <= m.end && strings.Trim(m.between(n.End(), m.end), " \t&|(){},:") == ""
}

func (m *mark) between(from, to token.Pos) string {
	return string(m.text[m.tree.Offset(from):m.tree.Offset(to)])
}

// around inserts text before and after n.
func (m *mark) around(n ast.Node, before, after string) {
	m.put(n.Pos(), before)
	m.put(n.End(), after)
	m.done = true
}

// visit marks n, or the part of n that begins on the line.
func (m *mark) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if m.begins(n) && n.Body != nil && !m.constant {
			m.put(n.Body.Lbrace+1, fmt.Sprintf(" if !%s { return %s };", m.on, m.value))
			m.done = true
		}
	case *ast.IfStmt:
		if m.begins(n) {
			m.condition(n.Cond, "false")
		}
	case *ast.CaseClause:
		if m.begins(n) && len(n.List) == 1 {
			m.condition(n.List[0], "false")
		}
	case *ast.BinaryExpr:
		for _, operand := range []ast.Expr{n.X, n.Y} {
			if !m.done && m.begins(operand) && m.alone(operand) {
				switch n.Op {
				case token.LAND:
					m.condition(operand, "true")
				case token.LOR:
					m.condition(operand, "false")
				}
			}
		}
	case *ast.ReturnStmt:
		switch {
		case !m.begins(n):
		case m.constant && len(n.Results) == 1:
			m.scale(n.Results[0])
		case !m.constant && m.value != "":
			m.around(n, fmt.Sprintf("if !%s { return %s }; ", m.on, m.value), "")
		}
	case *ast.AssignStmt:
		switch {
		case !m.begins(n):
		case m.constant && len(n.Rhs) == 1:
			m.scale(n.Rhs[0])
		case m.constant:
		case m.value != "":
			to := m.between(n.Pos(), n.Lhs[len(n.Lhs)-1].End())
			m.around(n, "", fmt.Sprintf("; if !%s { %s = %s }", m.on, to, m.value))
		case n.Tok != token.DEFINE:
			m.skip(n)
		}
	case *ast.ExprStmt:
		if m.begins(n) && !m.constant {
			m.skip(n)
		}
	}
}

// condition replaces a condition, if the rule is off, by the mark's value or by
// without.
func (m *mark) condition(cond ast.Expr, without string) {
	if m.constant {
		return
	}
	if m.value != "" {
		without = m.value
	}
	m.around(cond, "("+m.on+" && (", fmt.Sprintf(") || !%s && (%s))", m.on, without))
}

// skip replaces a statement, if the rule is off, by the mark's value or by
// nothing.
func (m *mark) skip(n ast.Node) { m.around(n, "if "+m.on+" { ", " } else { "+m.value+" }") }

func (m *mark) scale(value ast.Expr) {
	m.around(value, fmt.Sprintf("mutant_.Scaled(%d, ", m.place), ")")
}
