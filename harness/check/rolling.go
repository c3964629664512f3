package check

// judgeableScaling is the scaling that the current record is, nil if it is none
// or there is nothing to judge it by.
func judgeableScaling(m *Model) *scaling {
	if m.sent == nil || m.sent.scaling == nil || !m.sent.scaling.judgeable() {
		return nil
	}
	return m.sent.scaling
}

// rolling reports whether the Deployment was to be updated by rolling, in every
// way that the process may have had it in mind.
func (s *scaling) rolling() bool {
	return all(s.deployments, func(d *deployment) bool { return !d.recreate && !d.terminating })
}
