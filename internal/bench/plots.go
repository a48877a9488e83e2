package main

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/samber/lo"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is one plot: a figure along a series of benches, a line for each side.
type chart struct {
	file, series, figure string
	title, x, y          string
	scale                float64 // of the figure; 0: 1
	logX, logY           bool
	top                  float64 // of the y axis, the legend then being at the bottom; 0: as the figures are
}

var charts = []chart{
	{file: "nodes", series: "nodes", figure: mean, title: "One client, a free name", x: "nodes", y: "µs per lock and unlock"},
	{file: "names", series: "names", figure: perSecond, title: "Clients on names of their own, 5 nodes", x: "clients", y: "locks per second", logX: true, logY: true},
	{file: "waiters-share", series: "queue", figure: share, title: "One name held for 10 ms, 5 nodes", x: "clients", y: "% of the time it was held", scale: 100, logX: true, top: 100},
	{file: "waiters-requests", series: "queue", figure: requests, title: "One name held for 10 ms, 5 nodes", x: "clients", y: "requests per lock at each node", logX: true},
	{file: "held", series: "held", figure: mean, title: "One client, beside names that its process holds, 5 nodes", x: "names held", y: "µs per lock and unlock", logX: true},
	{file: "permits", series: "permits", figure: mean, title: "One client, beside permits in use, 5 nodes", x: "permits in use", y: "µs per acquire and release", logX: true},
	{file: "permits-node", series: "permits", figure: nodeTime, title: "One client, beside permits in use, 5 nodes", x: "permits in use", y: "µs in commands at each node", logX: true},
}

// Colours that are told apart on white by those who do not see all of them, and
// a mark of its own for each side: no plot relies on its colours.
var styles = map[string]struct {
	colour color.Color
	mark   draw.GlyphDrawer
}{
	quorateName: {color.RGBA{0x00, 0x5a, 0xb5, 0xff}, draw.CircleGlyph{}},
	asyncName:   {color.RGBA{0x56, 0xb4, 0xe9, 0xff}, draw.RingGlyph{}},
	redsyncName: {color.RGBA{0xd5, 0x5e, 0x00, 0xff}, draw.SquareGlyph{}},
	fastName:    {color.RGBA{0xe6, 0x9f, 0x00, 0xff}, draw.BoxGlyph{}},
	floorName:   {color.RGBA{0x55, 0x55, 0x55, 0xff}, draw.CrossGlyph{}},
	fencedName:  {color.RGBA{0x99, 0x99, 0x99, 0xff}, draw.PlusGlyph{}},
	rueidisName: {color.RGBA{0x00, 0x9e, 0x73, 0xff}, draw.PyramidGlyph{}},
	bsmName:     {color.RGBA{0xcc, 0x79, 0xa7, 0xff}, draw.TriangleGlyph{}},
}

// draw writes all plots for which there are results into a folder.
func (r *Results) draw(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // for everybody
		return err
	}
	for _, c := range charts {
		points := lo.Filter(r.Benches, func(b Result, _ int) bool { return b.Series == c.series })
		if len(points) < 2 {
			continue // no line
		}
		svg, err := c.draw(points, r)
		if err != nil {
			return fmt.Errorf("%s: %w", c.file, err)
		}
		if err := os.WriteFile(filepath.Join(folder, c.file+".svg"), svg, 0o644); err != nil { //nolint:gosec // for everybody
			return err
		}
	}
	return nil
}

// line is one side's medians, and how far the rounds were from them.
type line struct {
	plotter.XYs
	plotter.YErrors
}

func (c chart) draw(points []Result, r *Results) ([]byte, error) {
	p := c.axes(points)
	sides := lo.Uniq(lo.FlatMap(points, func(b Result, _ int) []string { return b.Sides }))
	for _, name := range sides {
		l := c.line(points, name)
		style, known := styles[name]
		if len(l.XYs) < 2 || !known {
			continue // one point is in the table
		}
		drawn, marks, err := plotter.NewLinePoints(l.XYs)
		if err != nil {
			return nil, err
		}
		bars, err := plotter.NewYErrorBars(l)
		if err != nil {
			return nil, err
		}
		drawn.Color, drawn.Width, bars.Color = style.colour, vg.Points(1.5), style.colour
		marks.Color, marks.Shape, marks.Radius = style.colour, style.mark, vg.Points(3.5)
		p.Add(drawn, bars, marks)
		p.Legend.Add(name, drawn, marks)
	}
	p.Y.Min = lo.Ternary(c.logY, p.Y.Min, 0)
	switch { // and the legend, in the upper left corner, hides nothing
	case c.top > 0:
		p.Y.Max, p.Legend.Top = c.top, false
	case c.logY:
		p.Y.Max *= 10
	default:
		p.Y.Max *= 1.4
	}
	p.X.Max *= lo.Ternary(c.logX, 1.5, 1.05) // its last label has some room

	canvas := vgsvg.New(16*vg.Centimeter, 9*vg.Centimeter)
	p.Draw(draw.New(canvas))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	// The font that measured the text is free, and hardly installed anywhere.
	// Those that it copies the widths of are.
	svg := bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
	return svg, nil
}

// line collects a side's points, as far as it took part.
func (c chart) line(points []Result, name string) (l line) {
	scale := lo.Ternary(c.scale == 0, 1, c.scale)
	for _, b := range points {
		if s, ok := b.Figures[c.figure][name]; ok {
			l.XYs = append(l.XYs, plotter.XY{X: b.X, Y: s.Median * scale})
			l.YErrors = append(l.YErrors, struct{ Low, High float64 }{(s.Median - s.Min) * scale, (s.Max - s.Median) * scale})
		}
	}
	return l
}

func (c chart) axes(points []Result) *plot.Plot {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.BackgroundColor = color.White // a dark page has dark text of its own, and no influence on this
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.TextStyle.Font.Size, p.Title.Padding = vg.Points(12), vg.Points(6)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font.Size, a.Tick.Label.Font.Size = vg.Points(11), vg.Points(10)
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font.Size = vg.Points(10)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xd8}, color.Gray{0xd8}
	p.Add(grid)
	// What was measured, and nothing else, is on the x axis.
	p.X.Tick.Marker = plot.ConstantTicks(lo.Map(points, func(b Result, _ int) plot.Tick {
		return plot.Tick{Value: b.X, Label: strconv.FormatFloat(b.X, 'f', -1, 64)}
	}))
	if c.logX {
		p.X.Scale = plot.LogScale{}
	}
	if c.logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	slices.SortFunc(points, func(a, b Result) int { return int(a.X - b.X) })
	return p
}
