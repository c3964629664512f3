package check

import "github.com/kube-gauntlet/gauntlet/harness/history"

// receivedVersions contains the newest version of each object that each process has received, by
// the name of the process. It counts lists, watch events and all responses, whether or not the
// process has a cache.
type receivedVersions map[string]map[objectName]history.Version

// observe reads the next record, after the model has processed it.
func (received receivedVersions) observe(m *Model, r *history.Record) {
	switch {
	case processStarts(r):
		delete(received, r.Process.Name)
	case m.answered != nil:
		if o := m.answered.response.Object; o != nil && m.answered.response.OK() {
			received.add(m.answered.process.name, o)
		}
	case r.List != nil:
		for i := range r.List.Items {
			received.add(r.List.Subject, &r.List.Items[i])
		}
	case r.Delivery != nil && r.Delivery.Type == history.Deleted:
		delete(received[r.Delivery.Subject], nameOf(r.Delivery.Object.Ref))
	case r.Delivery != nil && r.Delivery.Type.HasObject():
		received.add(r.Delivery.Subject, &r.Delivery.Object)
	case r.Commit != nil && r.Commit.Type == history.Deleted:
		for _, versions := range received {
			delete(versions, nameOf(r.Commit.Object.Ref))
		}
	}
}

// add records that a process has received a version of an object.
func (received receivedVersions) add(process string, o *history.Object) {
	if o.Name == "" || history.IsBookkeeping(o.Resource) {
		return
	}
	if received[process] == nil {
		received[process] = map[objectName]history.Version{}
	}
	name := nameOf(o.Ref)
	received[process][name] = max(received[process][name], o.Version)
}
