package kernels

import "strconv"

const (
	formulaDepth = 6
	formulaRows  = 32 // of values for the variables
)

// Expression writes size formulas, parses each and works it out for several rows of values.
func Expression(size int32) uint64 {
	source := random(11)
	checksum := uint64(checksumSeed)
	var w formulaWriter
	for range size {
		w.text = w.text[:0]
		w.formula(&source, formulaDepth)
		formula, ok := parseFormula(w.text)
		if !ok {
			return 0
		}
		for range formulaRows {
			var row variables
			for i := range row {
				row[i] = int64(source.next()%2000) - 1000
			}
			checksum = mix(checksum, uint64(formula.value(&row)))
		}
	}
	return checksum
}

// variables are the values of a to d.
type variables [4]int64

// formulaWriter makes random formulas.
type formulaWriter struct{ text []byte }

func (w *formulaWriter) string(text string) { w.text = append(w.text, text...) }

func (w *formulaWriter) formula(source *random, depth int) {
	kind := source.next() >> 16 % 16
	switch {
	case depth == 0 || kind == 0:
		w.leaf(source)
	case kind < 7:
		w.operation(source, depth-1)
	case kind < 12:
		w.string("(")
		w.operation(source, depth-1)
		w.string(")")
	case kind == 12:
		w.string("-")
		w.call(source, "abs", 1, depth-1)
	case kind == 13:
		w.call(source, "min", 2, depth-1)
	case kind == 14:
		w.call(source, "max", 2, depth-1)
	default:
		w.call(source, "if", 3, depth-1)
	}
}

func (w *formulaWriter) leaf(source *random) {
	number := source.next() >> 8
	if number%2 == 0 {
		w.text = append(w.text, 'a'+byte(number/2%4))
		return
	}
	w.text = strconv.AppendUint(w.text, uint64(number/2%1000), 10)
}

func (w *formulaWriter) operation(source *random, depth int) {
	w.formula(source, depth)
	w.string(" ")
	w.text = append(w.text, "++--**/%<"[source.next()>>16%9])
	w.string(" ")
	w.formula(source, depth)
}

func (w *formulaWriter) call(source *random, name string, arguments, depth int) {
	w.string(name)
	w.string("(")
	for i := range arguments {
		if i > 0 {
			w.string(", ")
		}
		w.formula(source, depth)
	}
	w.string(")")
}
