package kernels

// pancakes goes through all orders of a stack. An order's flips are how often the
// topmost pancake T can turn over the first T+1 before the 0 is on top.
type pancakes struct {
	order, turned []int
	orders        uint64 // seen so far
	most          uint64 // flips of the worst order
	balance       uint64 // flips of even orders minus those of odd ones
}

// Fannkuch flips every permutation of size numbers.
func Fannkuch(size int32) uint64 {
	n := int(max(size, 1))
	p := pancakes{order: make([]int, n), turned: make([]int, n)}
	for i := range p.order {
		p.order[i] = i
	}
	p.permute(n)
	return mix(mix(mix(checksumSeed, p.orders), p.most), p.balance)
}

// permute visits all orders of the first n pancakes and leaves them as they were.
func (p *pancakes) permute(n int) {
	if n == 1 {
		p.visit()
		return
	}
	for range n {
		p.permute(n - 1)
		first := p.order[0]
		copy(p.order[:n-1], p.order[1:n])
		p.order[n-1] = first
	}
}

func (p *pancakes) visit() {
	flips := p.flips()
	p.most = max(p.most, flips)
	if p.orders%2 == 0 {
		p.balance += flips
	} else {
		p.balance -= flips
	}
	p.orders++
}

func (p *pancakes) flips() uint64 {
	copy(p.turned, p.order)
	var flips uint64
	for p.turned[0] != 0 {
		for low, high := 0, p.turned[0]; low < high; low, high = low+1, high-1 {
			p.turned[low], p.turned[high] = p.turned[high], p.turned[low]
		}
		flips++
	}
	return flips
}
