package report

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// ends writes the name of each line next to its end, in the line's colour, so
// that no legend is needed. Names that would overlap move apart.
type ends struct{ all []end }

type end struct {
	name   string
	at     plotter.XY
	colour color.Color
}

// The gap between a line's end and its name, and the height of a name's row.
const (
	nameGap    = vg.Length(10)
	nameHeight = vg.Length(16)
)

func (e *ends) add(name string, at plotter.XY, colour color.Color) {
	e.all = append(e.all, end{name, at, colour})
}

func nameStyle(colour color.Color) text.Style {
	return text.Style{
		Color: colour, Font: font.From(plot.DefaultFont, 13), YAlign: text.YCenter,
		Handler: plot.DefaultTextHandler,
	}
}

// GlyphBoxes reserves the room for the names, right of the data.
func (e *ends) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	boxes := make([]plot.GlyphBox, 0, len(e.all))
	for _, one := range e.all {
		width := nameStyle(one.colour).Width(one.name)
		boxes = append(boxes, plot.GlyphBox{
			X: p.X.Norm(one.at.X), Y: p.Y.Norm(one.at.Y),
			Rectangle: vg.Rectangle{Max: vg.Point{X: nameGap + width + 6}},
		})
	}
	return boxes
}

// Plot writes the names.
func (e *ends) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	type row struct {
		end
		from vg.Point
		y    vg.Length
	}
	rows := make([]row, len(e.all))
	for i, one := range e.all {
		at := vg.Point{X: toX(one.at.X), Y: toY(one.at.Y)}
		rows[i] = row{one, at, at.Y}
	}
	slices.SortFunc(rows, func(a, b row) int { return int(a.y*100) - int(b.y*100) })
	heights := make([]vg.Length, len(rows))
	for i, r := range rows {
		heights[i] = r.y
	}
	for i, y := range apart(heights, nameHeight, c.Min.Y) {
		r := rows[i]
		name := vg.Point{X: r.from.X + nameGap, Y: y}
		if moved := y - r.y; moved > 2 || moved < -2 {
			c.StrokeLine2(draw.LineStyle{Color: r.colour, Width: vg.Points(0.6)},
				r.from.X+4, r.from.Y, name.X-1, name.Y)
		}
		c.FillText(nameStyle(r.colour), name, r.name)
	}
}

// apart adjusts rising heights so that each is at least gap above the last one,
// and none is below floor. Heights that are too close move up and down equally.
func apart(heights []vg.Length, gap, floor vg.Length) []vg.Length {
	type group struct {
		sum vg.Length // sum of the heights at which the members would begin
		n   int
	}
	var groups []group
	start := func(g group) vg.Length { return max(g.sum/vg.Length(g.n), floor) }
	for _, h := range heights {
		groups = append(groups, group{h, 1})
		for len(groups) > 1 {
			a, b := groups[len(groups)-2], groups[len(groups)-1]
			if start(b) >= start(a)+gap*vg.Length(a.n) {
				break
			}
			groups = append(groups[:len(groups)-2], group{a.sum + b.sum - gap*vg.Length(a.n*b.n), a.n + b.n})
		}
	}
	out := make([]vg.Length, 0, len(heights))
	for _, g := range groups {
		for i := range g.n {
			out = append(out, start(g)+gap*vg.Length(i))
		}
	}
	return out
}
