package expr

import "strings"

// String returns the expression in one canonical form: lower case, ^ for powers, and
// no parentheses but those it needs. Parsing it again gives the same expression.
func (x *Expression) String() string {
	var b strings.Builder
	x.root.print(&b)
	return b.String()
}

// power returns how tightly a node holds together when it is printed.
func (n *node) power() int {
	switch n.kind {
	case unaryNode:
		return powerSign
	case binaryNode:
		return binaryPower(n.text)
	case factorialNode:
		return powerPostfix
	}
	return powerPostfix + 1
}

func (n *node) print(b *strings.Builder) {
	switch n.kind {
	case numberNode, constantNode:
		b.WriteString(n.text)
	case unaryNode:
		b.WriteString(n.text)
		n.operands[0].printWithin(b, powerSign)
	case factorialNode:
		n.operands[0].printWithin(b, powerPostfix+1)
		b.WriteString("!")
	case binaryNode:
		n.printBinary(b)
	case callNode:
		b.WriteString(n.text + "(")
		for i, argument := range n.operands {
			if i > 0 {
				b.WriteString(", ")
			}
			argument.print(b)
		}
		b.WriteString(")")
	}
}

func (n *node) printBinary(b *strings.Builder) {
	power := n.power()
	leftPower, rightPower := power, power+1
	if n.text == "^" {
		leftPower, rightPower = power+1, powerSign // 2^-1 needs no parentheses
	}
	n.operands[0].printWithin(b, leftPower)
	if n.text == "^" {
		b.WriteString("^")
	} else {
		b.WriteString(" " + n.text + " ")
	}
	n.operands[1].printWithin(b, rightPower)
}

// printWithin puts parentheses around a node that holds together less tightly than
// its place needs.
func (n *node) printWithin(b *strings.Builder, least int) {
	if n.power() >= least {
		n.print(b)
		return
	}
	b.WriteString("(")
	n.print(b)
	b.WriteString(")")
}
