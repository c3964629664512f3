package check

// toClaim reports whether a pod is to be adopted or released by the owner.
func (o *owner) toClaim(p *pod) bool {
	return p.active && (p.orphan() && p.Namespace == o.Namespace || p.controller.UID == o.UID) &&
		p.orphan() == o.selector.Matches(p.labels)
}
