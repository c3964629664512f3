package check

import (
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// receivedVersions contains the newest version of each object that each process has received. The
// outer key is the name of the process. Lists, watch events and successful responses count, whether
// or not the process has a cache. The map stores only the reference of each version.
type receivedVersions map[string]map[objectName]history.Ref

// observe reads the next record of the history, and stores the versions that a process received
// with it. The runner must have updated the model (the parameter m) with this record already.
func (received receivedVersions) observe(m *Model, r *history.Record) {
	switch {
	case processStarts(r):
		delete(received, r.Process.Name)
	case m.answered != nil:
		if o := m.answered.response.Object; o != nil && m.answered.response.OK() {
			received.add(m.answered.process.name, o)
		}
	case r.List != nil:
		received.replace(r.List)
	case r.Delivery != nil && r.Delivery.Type == history.Deleted:
		delete(received[r.Delivery.Subject], nameOf(r.Delivery.Object.Ref))
	case r.Delivery != nil && r.Delivery.Type.HasObject():
		received.add(r.Delivery.Subject, &r.Delivery.Object)
	}
}

// replace stores the versions in a list that a process received. Unless the list has several pages,
// replace forgets objects of the listed resource that the list does not contain. It keeps those
// that are newer than the list.
func (received receivedVersions) replace(l *history.List) {
	if !l.Continued && !l.More {
		listed := map[objectName]bool{}
		for i := range l.Items {
			listed[nameOf(l.Items[i].Ref)] = true
		}
		maps.DeleteFunc(received[l.Subject], func(name objectName, o history.Ref) bool {
			return name.resource == l.Resource && o.Version <= l.Version && !listed[name]
		})
	}
	for i := range l.Items {
		received.add(l.Subject, &l.Items[i])
	}
}

// add stores the given version of an object, which a process has received. An older version does
// not replace a newer one. add ignores leases, events and access reviews.
func (received receivedVersions) add(process string, o *history.Object) {
	if o.Name == "" || history.IsBookkeeping(o.Resource) {
		return
	}
	if received[process] == nil {
		received[process] = map[objectName]history.Ref{}
	}
	if name := nameOf(o.Ref); received[process][name].Version <= o.Version {
		received[process][name] = o.Ref
	}
}
