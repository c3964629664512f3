package check

// manages reports whether a pod counts for the owner.
func (o *owner) manages(p *pod) bool {
	return p.active && p.controller.UID == o.UID && o.selector.Matches(p.labels)
}
