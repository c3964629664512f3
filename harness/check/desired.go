package check

// hitsActive reports whether a delete is of a pod that the view shows active.
func (c *call) hitsActive() bool {
	p := c.process.view.pods[c.pod.UID]
	return p != nil && p.active
}
