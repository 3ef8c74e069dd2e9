package engine

// muchWritten is the number of bytes from which memory is given back to the system in the background. The system takes
// 0.1 to 0.45 ms for a MiB, so a call waits for 15 ms at most.
const muchWritten = 32 << 20

// retire returns an instance to the pool after a run, or closes it if it is not to be reused or cannot be reset. It
// does so in the background if that takes long, so that no call outlives its deadline. Only a few instances at a time
// are retired in the background, since each still holds its memory: the caller waits for any others.
func (i *instance) retire(key poolKey, reuse bool) {
	finish := func() {
		if reuse && i.module.rewritten.unrestorable == "" && i.reset() == nil {
			i.module.engine.idle.put(key, i)
			return
		}
		i.close(i.module.engine.base)
	}
	if i.survey() < muchWritten || !i.module.engine.retireLater(i.module, key, finish) {
		finish()
	}
}

// retireLater runs a function in another goroutine, for which Close and evictions wait. It
// reports false if there are too many already. The module must be in use.
func (e *Engine) retireLater(m *Module, key poolKey, finish func()) bool {
	select {
	case e.retiring <- struct{}{}:
	default:
		return false
	}
	of := &m.residence
	if p, resumed := key.owner.(*Program); resumed {
		of = &p.residence
	}
	e.mu.Lock()
	e.hold(of)
	e.mu.Unlock()
	go func() {
		defer func() { <-e.retiring }()
		defer e.release(of)
		finish()
	}()
	return true
}
