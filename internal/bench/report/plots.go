package report

import (
	"bytes"
	"fmt"
	"math"
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
	scale                float64 // factor for the figure; 0 means 1
	logX, logY           bool
	top                  float64 // top of the y axis; 0: determined by the figures
}

var charts = []chart{
	{file: "nodes", series: "nodes", figure: Mean, title: "One client, a free name", x: "nodes",
		y: "µs per lock and unlock"},
	{file: "names", series: "names", figure: PerSecond, title: "Clients on names of their own, 5 nodes",
		x: "clients", y: "locks per second", logX: true, logY: true},
	{file: "waiters-share", series: "queue", figure: Share, title: "One name held for 10 ms, 5 nodes",
		x: "clients", y: "% of the time it was held", scale: 100, logX: true, top: 100},
	{file: "waiters-requests", series: "queue", figure: Requests, title: "One name held for 10 ms, 5 nodes",
		x: "clients", y: "requests per lock at each node", logX: true},
	{file: "held", series: "held", figure: Mean,
		title: "One client, beside names that its process holds, 5 nodes", x: "names held",
		y: "µs per lock and unlock", logX: true},
	{file: "permits", series: "permits", figure: Mean, title: "One client, beside permits in use, 5 nodes",
		x: "permits in use", y: "µs per acquire and release", logX: true},
	{file: "permits-node", series: "permits", figure: NodeTime,
		title: "One client, beside permits in use, 5 nodes", x: "permits in use",
		y: "µs in commands at each node", logX: true},
}

// Draw writes all plots for which there are results into a folder, in each
// theme.
func (r *Results) Draw(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // everyone may read it
		return err
	}
	for _, c := range charts {
		points := lo.Filter(r.Benches, func(b Result, _ int) bool { return b.Series == c.series })
		if len(points) < 2 {
			continue // the side did not take part
		}
		for _, t := range themes {
			svg, err := c.draw(points, t)
			if err != nil {
				return fmt.Errorf("%s: %w", c.file, err)
			}
			if err := os.WriteFile(filepath.Join(folder, c.file+t.suffix+".svg"), svg, 0o644); err != nil { //nolint:gosec // everyone may read it
				return err
			}
		}
	}
	return r.drawFlames(folder)
}

// line is one side's medians, and the spread of its rounds.
type line struct {
	plotter.XYs
	plotter.YErrors
}

func (c chart) draw(points []Result, t theme) ([]byte, error) {
	p, err := c.plot(points, t)
	if err != nil {
		return nil, err
	}
	canvas := vgsvg.New(22*vg.Centimeter, 12*vg.Centimeter)
	p.Draw(draw.New(canvas))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	// The free font that measured the text is rarely installed. The fonts whose
	// widths it copies are.
	svg := bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
	return svg, nil
}

func (c chart) plot(points []Result, t theme) (*plot.Plot, error) {
	p := c.axes(points, t)
	labels := &ends{}
	for _, name := range lo.Uniq(lo.FlatMap(points, func(b Result, _ int) []string { return b.Sides })) {
		l := c.line(points, name)
		style, known := styles[name]
		if len(l.XYs) < 2 || !known {
			continue // a single point is in the table
		}
		drawn, marks, err := plotter.NewLinePoints(l.XYs)
		if err != nil {
			return nil, err
		}
		bars, err := plotter.NewYErrorBars(l)
		if err != nil {
			return nil, err
		}
		colour := t.colour(style)
		drawn.Color, drawn.Width, bars.Color = colour, vg.Points(2), colour
		marks.Color, marks.Shape, marks.Radius = colour, style.mark, vg.Points(4)
		p.Add(drawn, bars, marks)
		labels.add(name, l.XYs[len(l.XYs)-1], colour)
	}
	p.Add(labels)
	p.Y.Min = lo.Ternary(c.logY, p.Y.Min, 0)
	if c.top > 0 {
		p.Y.Max = c.top
	}
	return p, nil
}

// line collects a side's points, as far as it took part.
func (c chart) line(points []Result, name string) (l line) {
	scale := lo.Ternary(c.scale == 0, 1, c.scale)
	for _, b := range points {
		if s, ok := b.Figures[c.figure][name]; ok {
			l.XYs = append(l.XYs, plotter.XY{X: b.X, Y: s.Median * scale})
			l.YErrors = append(l.YErrors, struct{ Low, High float64 }{(s.Median - s.Min) * scale,
				(s.Max - s.Median) * scale})
		}
	}
	return l
}

func (c chart) axes(points []Result, t theme) *plot.Plot {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.TextStyle.Font.Size, p.Title.TextStyle.Color, p.Title.Padding = vg.Points(15), t.text, vg.Points(8)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font.Size, a.Tick.Label.Font.Size = vg.Points(14), vg.Points(13)
		a.Label.TextStyle.Color, a.Tick.Label.Color, a.Color, a.Tick.Color = t.text, t.text, t.grid, t.grid
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = t.grid, t.grid
	p.Add(grid)
	// Only measured values have a tick on the x axis.
	p.X.Tick.Marker = plot.ConstantTicks(lo.Map(points, func(b Result, _ int) plot.Tick {
		return plot.Tick{Value: b.X, Label: strconv.FormatFloat(b.X, 'f', -1, 64)}
	}))
	if c.logX {
		p.X.Scale = plot.LogScale{}
	}
	if c.logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(round)
	}
	slices.SortFunc(points, func(a, b Result) int { return int(a.X - b.X) })
	return p
}

// round returns the ticks of a logarithmic axis: 1, 2 and 5 times each power of
// ten.
func round(low, high float64) (ticks []plot.Tick) {
	for power := math.Pow10(int(math.Floor(math.Log10(low)))); power <= high; power *= 10 {
		for _, n := range []float64{1, 2, 5} {
			if v := n * power; v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', -1, 64)})
			}
		}
	}
	return ticks
}
