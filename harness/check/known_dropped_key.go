package check

import "github.com/kube-gauntlet/gauntlet/harness/history"

// triesMax is how often upstream tries what Deployments and Services ask for, without a
// success between, before it waits for something else to happen.
const triesMax = 16

// dropped is what processes have tried so often without success that they have given it
// up, until something else happens. Then they begin to count anew.
type dropped struct{ *tries }

// newDropped follows calls that are not for pods.
func newDropped(of func(*call) bool) dropped { return dropped{newTries(triesMax, of)} }

func (d dropped) observe(m *Model, r *history.Record) {
	for _, wake := range m.wakes {
		if d.byKey[wake.item] != nil && hears(m, r, wake) {
			d.wake(m, wake.item)
		}
	}
	// In the try that failed, the status may be written after it.
	if m.sent != nil && r.Request.Subresource != "status" {
		d.takeUp(m, m.sent)
	}
	d.tries.observe(m, r)
}

// hears reports whether what came wakes a Service, or a Deployment for certain: of its
// ReplicaSets and their pods not all does.
func hears(m *Model, r *history.Record, w wake) bool {
	if w.service != (objectName{}) {
		wakes, _ := newsOfService(m, r, w.item)
		return wakes
	}
	_, of := newsOf(r)
	return w.itself && of == deploymentResource
}

// takeUp takes in that a process works on a key. If it does no more of the try that
// failed, something else has happened.
func (d dropped) takeUp(m *Model, sent *call) {
	for _, tried := range d.byKey[sent.item] {
		if m.at-tried.at > sent.process.drain {
			tried.news = m.seq
		}
	}
}

// explains reports whether some process has given an item up, and nothing has made it
// take it up since.
func (d dropped) explains(m *Model, i item) bool {
	for key := range m.keys(i) {
		for _, tried := range d.byKey[key] {
			if tried.n == triesMax && tried.news <= tried.sent {
				return true
			}
		}
	}
	return false
}
