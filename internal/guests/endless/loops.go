package main

//go:noinline
func readFor() {
	readInput()
	for {
		count += 10
	}
}

//go:noinline
func readWhile() {
	readInput()
	for always {
		count += 11
	}
}

//go:noinline
func readDo() {
	readInput()
	for ok := true; ok; ok = !never {
		count += 12
	}
}

//go:noinline
func readGoto() {
	readInput()
	if always {
		goto second
	}
first:
	count += 13
	if never {
		goto first
	}
second:
	count += 14
	if count&1 != 0 {
		goto second
	}
	goto first
}

//go:noinline
func readReturn() {
	readInput()
	for {
		count += 15
		if never {
			return
		}
	}
}

//go:noinline
func readCalling() {
	readInput()
	for {
		step()
		count += 16
	}
}

//go:noinline
func readOnce() {
	readInput()
	count += 17
}

//go:noinline
func callFor() {
	step()
	for {
		count += 10
	}
}

//go:noinline
func callWhile() {
	step()
	for always {
		count += 11
	}
}

//go:noinline
func callDo() {
	step()
	for ok := true; ok; ok = !never {
		count += 12
	}
}

//go:noinline
func callGoto() {
	step()
	if always {
		goto second
	}
first:
	count += 13
	if never {
		goto first
	}
second:
	count += 14
	if count&1 != 0 {
		goto second
	}
	goto first
}

//go:noinline
func callReturn() {
	step()
	for {
		count += 15
		if never {
			return
		}
	}
}

//go:noinline
func callCalling() {
	step()
	for {
		step()
		count += 16
	}
}

//go:noinline
func callOnce() {
	step()
	count += 17
}

//go:noinline
func tableFor() {
	inTable()
	for {
		count += 10
	}
}

//go:noinline
func tableWhile() {
	inTable()
	for always {
		count += 11
	}
}

//go:noinline
func tableDo() {
	inTable()
	for ok := true; ok; ok = !never {
		count += 12
	}
}

//go:noinline
func tableGoto() {
	inTable()
	if always {
		goto second
	}
first:
	count += 13
	if never {
		goto first
	}
second:
	count += 14
	if count&1 != 0 {
		goto second
	}
	goto first
}

//go:noinline
func tableReturn() {
	inTable()
	for {
		count += 15
		if never {
			return
		}
	}
}

//go:noinline
func tableCalling() {
	inTable()
	for {
		step()
		count += 16
	}
}

//go:noinline
func tableOnce() {
	inTable()
	count += 17
}

//go:noinline
func calledFor() {
	for {
		count += 10
	}
}

//go:noinline
func calledWhile() {
	for always {
		count += 11
	}
}

//go:noinline
func calledDo() {
	for ok := true; ok; ok = !never {
		count += 12
	}
}

//go:noinline
func calledGoto() {
	if always {
		goto second
	}
first:
	count += 13
	if never {
		goto first
	}
second:
	count += 14
	if count&1 != 0 {
		goto second
	}
	goto first
}

//go:noinline
func calledReturn() {
	for {
		count += 15
		if never {
			return
		}
	}
}

//go:noinline
func calledCalling() {
	for {
		step()
		count += 16
	}
}

//go:noinline
func calledOnce() {
	count += 17
}
