package kernels

const evaluatorDepth = 10

// term is a node of a tree that is evaluated by virtual calls. Numbers wrap around.
type term interface{ evaluate(row *variables) int64 }

type constantTerm int64

type variableTerm int

type sumTerm struct{ left, right term }

type differenceTerm struct{ left, right term }

type productTerm struct{ left, right term }

type choiceTerm struct{ condition, then, otherwise term }

// Evaluator evaluates one random tree for size rows of values.
func Evaluator(size int32) uint64 {
	source := random(15)
	tree := randomTerm(&source, evaluatorDepth)
	checksum := uint64(checksumSeed)
	for range size {
		var row variables
		for i := range row {
			row[i] = int64(source.next()%2000) - 1000
		}
		checksum = mix(checksum, uint64(tree.evaluate(&row)))
	}
	return checksum
}

func randomTerm(source *random, depth int) term {
	kind := source.next() >> 16 % 16
	if depth == 0 || kind == 0 {
		number := source.next() >> 8
		if number%2 == 0 {
			return variableTerm(number / 2 % 4)
		}
		return constantTerm(number / 2 % 1000)
	}
	first := randomTerm(source, depth-1)
	second := randomTerm(source, depth-1)
	switch {
	case kind < 6:
		return &sumTerm{first, second}
	case kind < 10:
		return &differenceTerm{first, second}
	case kind < 14:
		return &productTerm{first, second}
	}
	return &choiceTerm{first, second, randomTerm(source, depth-1)}
}

func (t constantTerm) evaluate(*variables) int64 { return int64(t) }

func (t variableTerm) evaluate(row *variables) int64 { return row[t] }

func (t *sumTerm) evaluate(row *variables) int64 {
	return t.left.evaluate(row) + t.right.evaluate(row)
}

func (t *differenceTerm) evaluate(row *variables) int64 {
	return t.left.evaluate(row) - t.right.evaluate(row)
}

func (t *productTerm) evaluate(row *variables) int64 {
	return t.left.evaluate(row) * t.right.evaluate(row)
}

func (t *choiceTerm) evaluate(row *variables) int64 {
	if t.condition.evaluate(row) > 0 {
		return t.then.evaluate(row)
	}
	return t.otherwise.evaluate(row)
}
