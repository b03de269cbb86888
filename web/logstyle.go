package web

import (
	"strconv"
	"strings"
)

// pen is how text looks from somewhere on.
type pen struct {
	style style
	url   string
}

// style is a set of SGR attributes. Colours are those of a 16-colour terminal,
// by their SGR numbers, 0 for none: of the others the nearest is taken, so that
// every one of them can be readable in light and dark.
type style struct {
	fg, bg                                              uint8
	bold, faint, italic, underline, strike, blink, swap bool
}

// params returns the SGR parameters that set s from nothing.
func (s style) params() string {
	p := []byte{'0'}
	add := func(on bool, n uint8) {
		if on {
			p = append(p, ';')
			p = strconv.AppendUint(p, uint64(n), 10)
		}
	}
	fg, bg := s.fg, s.bg
	if s.swap {
		fg, bg = s.bg, s.fg
		if fg != 0 {
			fg -= 10
		}
		if bg == 0 {
			bg = 37
		}
		bg += 10
	}
	add(s.bold, 1)
	add(s.faint, 2)
	add(s.italic, 3)
	add(s.underline, 4)
	add(s.strike, 9)
	add(fg != 0, fg)
	add(bg != 0, bg)
	return string(p)
}

// apply returns the style after an SGR with these parameters: digits,
// semicolons and colons.
func (s style) apply(params string) style {
	list := strings.Split(params, ";")
	for i := 0; i < len(list); i++ {
		sub := strings.Split(list[i], ":")
		n := number(sub[0])
		switch {
		case n == 38 || n == 48:
			args := sub[1:]
			if len(sub) == 1 {
				args = list[i+1:]
			}
			c, used := colour(args, len(sub) > 1)
			if len(sub) == 1 {
				i += used
			}
			if n == 38 {
				s.fg = c
			} else if c != 0 {
				s.bg = c + 10
			}
		default:
			s = s.one(n, len(sub) > 1 && sub[1] == "0")
		}
	}
	return s
}

func (s style) one(n int, off bool) style {
	switch {
	case n == 0:
		return style{}
	case n == 1:
		s.bold, s.faint = true, false
	case n == 2:
		s.faint, s.bold = true, false
	case n == 3:
		s.italic = true
	case n == 4:
		s.underline = !off
	case n == 7:
		s.swap = true
	case n == 9:
		s.strike = true
	case n == 21:
		s.underline = true
	case n == 22:
		s.bold, s.faint = false, false
	case n == 23:
		s.italic = false
	case n == 24:
		s.underline = false
	case n == 27:
		s.swap = false
	case n == 29:
		s.strike = false
	case n >= 30 && n <= 37, n >= 90 && n <= 97:
		s.fg = uint8(n)
	case n == 39:
		s.fg = 0
	case n >= 40 && n <= 47, n >= 100 && n <= 107:
		s.bg = uint8(n)
	case n == 49:
		s.bg = 0
	}
	return s
}

// colour reads what follows a 38 or 48 and returns the nearest foreground
// number and how many parameters were used.
func colour(args []string, colons bool) (c uint8, used int) {
	if len(args) == 0 {
		return 0, 0
	}
	switch number(args[0]) {
	case 5:
		if len(args) < 2 {
			return 0, len(args)
		}
		return indexed(number(args[1])), 2
	case 2:
		rgb := args[1:]
		if colons && len(rgb) > 3 {
			rgb = rgb[1:] // the colour space
		}
		if len(rgb) < 3 {
			return 0, len(args)
		}
		return nearest(number(rgb[0]), number(rgb[1]), number(rgb[2])), 4
	}
	return 0, 1
}

func indexed(n int) uint8 {
	switch {
	case n < 8:
		return uint8(30 + n)
	case n < 16:
		return uint8(90 + n - 8)
	case n < 232:
		level := func(i int) int {
			if i == 0 {
				return 0
			}
			return 55 + 40*i
		}
		n -= 16
		return nearest(level(n/36), level(n/6%6), level(n%6))
	}
	grey := 8 + 10*(n-232)
	return nearest(grey, grey, grey)
}

// nearest returns the foreground number of the 16 that looks most alike.
func nearest(r, g, b int) uint8 {
	hi, lo := max(r, g, b), min(r, g, b)
	if hi-lo < 48 {
		switch {
		case hi < 64:
			return 30
		case hi < 150:
			return 90
		case hi < 220:
			return 37
		}
		return 97
	}
	mid := (hi + lo) / 2
	n := 0
	for i, v := range []int{r, g, b} {
		if v > mid {
			n |= 1 << i
		}
	}
	if hi > 215 {
		return uint8(90 + n)
	}
	return uint8(30 + n)
}

// number reads a parameter; "" is 0 and what is too large is 255.
func number(s string) int {
	if s == "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return 255
	}
	return int(n)
}
