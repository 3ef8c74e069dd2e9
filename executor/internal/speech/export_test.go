package speech

// Held returns how many bytes of outputs wait, as [Size] counts them. It is never more than [New] was given.
func (l *Sequencer) Held() int64 { return l.held }
