package check

import "github.com/kube-gauntlet/gauntlet/harness/history"

// triesMax is how often upstream tries what Deployments and Services ask for, without a
// success between, before it waits for something else to happen.
const triesMax = 16

// dropped is what processes have tried so often without success that they have given it
// up, until something else happens.
type dropped struct{ *tries }

// newDropped follows calls that are not for pods.
func newDropped(of func(*call) bool) dropped { return dropped{newTries(of)} }

func (d dropped) observe(m *Model, r *history.Record) {
	// Lists tell much that is known; pods and ReplicaSets change much that wakes nobody.
	if news, of := newsOf(r); news.OfObject() && (of == serviceResource || of == deploymentResource) {
		for _, wake := range m.wakes {
			if wake.itself {
				d.wake(m, wake.item)
			}
		}
	}
	if m.sent != nil {
		d.takenUp(m, m.sent)
	}
	d.tries.observe(m, r)
}

// takenUp takes in that a process works on a key: if that is no more of the try that
// failed, something else has happened.
func (d dropped) takenUp(m *Model, sent *call) {
	for _, tried := range d.byKey[sent.item] {
		if m.at-tried.at > lag {
			tried.news = m.seq
		}
	}
}

// explains reports whether some process has given an item up, and nothing has made it
// take it up since without failing once more.
func (d dropped) explains(m *Model, i item) bool {
	for key := range m.keys(i) {
		for _, tried := range d.byKey[key] {
			if tried.n >= triesMax && tried.news <= tried.sent {
				return true
			}
		}
	}
	return false
}
