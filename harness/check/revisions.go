package check

// oldestOf is the oldest ReplicaSet of a template, nil if there is none.
func oldestOf(sets []*owner, pods *template) (oldest *owner) {
	for _, set := range sets {
		if set.template.same(pods) && (oldest == nil || set.before(oldest)) {
			oldest = set
		}
	}
	return oldest
}
