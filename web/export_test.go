package web

// Known counts the keys in memory.
func (l *Limiter) Known() int { return len(l.byKey) }
