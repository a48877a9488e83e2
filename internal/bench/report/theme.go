package report

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/vg/draw"
)

// theme is the look of a plot on a light or a dark page. The background is the
// page's.
type theme struct {
	suffix     string // of the file
	text, grid color.Color
	colour     func(style) color.Color
}

var themes = []theme{
	{suffix: "", text: rgb(0x1f2328), grid: rgb(0xd1d9e0), colour: func(s style) color.Color { return s.light }},
	{suffix: "-dark", text: rgb(0xf0f6fc), grid: rgb(0x3d444d),
		colour: func(s style) color.Color { return s.dark }},
}

func rgb(hex uint32) color.Color {
	// Nolint:gosec // truncated on purpose.
	return color.RGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

func hex(c color.Color) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

// style is how one side is drawn: in colours that colour-blind readers can
// distinguish, and with a mark of its own, because no plot may rely on colours
// alone.
type style struct {
	light, dark color.Color
	mark        draw.GlyphDrawer
}

var styles = map[string]style{
	QuorateName: {rgb(0x005ab5), rgb(0x58a6ff), draw.CircleGlyph{}},
	AsyncName:   {rgb(0x0a7ea4), rgb(0x7ee0ff), draw.RingGlyph{}},
	RedsyncName: {rgb(0xc44e00), rgb(0xff8c4b), draw.SquareGlyph{}},
	FastName:    {rgb(0x9a6700), rgb(0xf2cc60), draw.BoxGlyph{}},
	FloorName:   {rgb(0x555555), rgb(0xb0b8c0), draw.CrossGlyph{}},
	FencedName:  {rgb(0x808080), rgb(0x8b949e), draw.PlusGlyph{}},
	RueidisName: {rgb(0x00795a), rgb(0x3fd0a4), draw.PyramidGlyph{}},
	BsmName:     {rgb(0xa0508a), rgb(0xe39ac8), draw.TriangleGlyph{}},
}
