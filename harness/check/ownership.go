package check

// saw reports whether the process may have the call's pod in mind in such a way.
func (c *call) saw(such func(sighting) bool) bool {
	for _, s := range c.process.view.sightings(c.pod.UID) {
		if such(s) {
			return true
		}
	}
	return false
}
