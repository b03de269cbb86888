package web

import (
	"fmt"
	"math"
	"strings"
	"time"

	"docket/store/ci"
)

// bars is a drawing of runs: one bar each, its height the duration, its
// colour and its shape the result.
type bars struct {
	Width, Height int
	Label         string // instead of the picture, for who cannot see it
	Caption       string
	Lines         []gridLine
	Right, AxisX  int // where grid lines end, and their labels begin
	Bars          []bar
}

type gridLine struct {
	Y, TextY int
	Text     string
}

type bar struct {
	State   ci.State
	Title   string
	X, Step int // the column
	BX, W   int // the bar in it
	Y, H    int
	Mark    string // path of the sign that says "failed" without colour
}

const (
	stripBars = 40
	chartBars = 80
)

// strip draws the history of a project's card; nil for no runs.
func strip(list []Bar) *bars { return draw(list, stripBars, 6, 36, false) }

// chart draws a project's durations.
func chart(list []Bar) *bars {
	return draw(list, chartBars, min(24, max(13, 1080/max(1, len(list)))), 96, true)
}

func draw(list []Bar, most, step, height int, axis bool) *bars {
	if len(list) == 0 {
		return nil
	}
	list = list[max(0, len(list)-most):]
	const head = 7 // room for marks
	d := &bars{Height: height, Width: len(list) * step, Label: summary(list)}
	d.Right = d.Width
	var top time.Duration
	for _, b := range list {
		top = max(top, b.Duration)
	}
	if axis {
		top = ceiling(top)
		d.Height += 6
		d.AxisX = d.Width + 6
		d.Width += 58
		for _, part := range []int{2, 1} {
			y := head + (height-head)*(2-part)/2
			d.Lines = append(d.Lines, gridLine{y, y + 4, durationText(top * time.Duration(part) / 2)})
		}
		d.Caption = "last " + counted(len(list), "run", "runs")
	}
	for i, b := range list {
		h := 3
		if top > 0 {
			h = max(3, int(math.Round(float64(height-head)*float64(b.Duration)/float64(top))))
		}
		v := bar{State: b.State, X: i * step, Step: step, BX: i*step + 1, W: step - 2, H: h, Y: height - h, Title: title(b)}
		if b.State == ci.Failed {
			c := v.BX + v.W/2
			v.Mark = fmt.Sprintf("M%d %dl-2 -4h4z", c, v.Y-1)
		}
		d.Bars = append(d.Bars, v)
	}
	return d
}

func title(b Bar) string {
	s := b.Run + ": " + words(b.State)
	if b.Duration > 0 {
		s += ", " + durationText(b.Duration)
	}
	if !b.At.IsZero() {
		s += ", " + human(b.At.Time)
	}
	return s
}

// summary says in words what the bars show.
func summary(list []Bar) string {
	n := map[ci.State]int{}
	for _, b := range list {
		n[b.State]++
	}
	var parts []string
	for _, s := range ci.States {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], words(s)))
		}
	}
	return "Last " + counted(len(list), "run", "runs") + ": " + strings.Join(parts, ", ")
}

// ceiling returns a round duration of at least d.
func ceiling(d time.Duration) time.Duration {
	for _, s := range []int{2, 4, 10, 20, 30, 60, 90, 120, 180, 240, 360, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 14400, 28800, 43200, 86400} {
		if c := time.Duration(s) * time.Second; c >= d {
			return c
		}
	}
	day := 24 * time.Hour
	return (d + day - 1) / day * day
}
