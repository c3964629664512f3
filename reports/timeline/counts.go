package timeline

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// counts computes charts over time: the number of each owner's pods, and the number of each
// Service's addresses. It has the current numbers, and the lines of the charts so far.
type counts struct {
	pods     map[types.UID]podCount    // the existing pods
	owners   map[types.UID]*ownerCount // all objects that control pods or can control pods
	services map[string]*serviceCount  // the charts of Services and their Endpoints, by name
	// ownerCharts has the charts of pods by owner, and serviceCharts has the charts of Services.
	// The charts are in the order in which the history first mentions the owner or Service.
	ownerCharts, serviceCharts []*chartLines
}

// podCount has the fields of a pod's last version that the charts depend on.
type podCount struct {
	owner         types.UID // the UID of the pod's controller; empty if the pod has none
	labels        map[string]string
	active, ready bool // a ready pod is also active
}

// ownerCount has the current number of an owner's pods, and the chart that shows it.
type ownerCount struct {
	owner types.UID // the UID of the owner's own controller; empty if the owner has none
	// existing is the number of active pods, and ready is the number of active pods that are
	// ready. The numbers include the pods of dependents, such as the pods of a Deployment's
	// ReplicaSets.
	existing, ready int
	deleted         bool
	lines           *chartLines // the owner's chart; nil if the chart of the owner's controller includes the pods
}

// serviceCount has the chart of a Service and the Endpoints object with the same name.
type serviceCount struct {
	selector map[string]string // the pod selector of the Service
	exists   map[string]bool   // true for the resources services and endpoints if such an object exists
	lines    *chartLines
}

// chartLines has the title and the lines of a chart that is still being built.
type chartLines struct {
	title string
	lines []Line
	// hidden is true while a chart need not be shown, because the object has had no pod. Only
	// charts of objects whose Kind package kube does not know are hidden, because few of
	// these objects have pods.
	hidden bool
}

// set adds a value to the line with the given name, and adds the line if the chart lacks it. It
// ignores a value that equals the last value of the line.
func (l *chartLines) set(name string, at time.Duration, value int) {
	i := slices.IndexFunc(l.lines, func(line Line) bool { return line.Name == name })
	if i < 0 {
		i = len(l.lines)
		l.lines = append(l.lines, Line{Name: name})
	}
	line := &l.lines[i]
	if n := len(line.Values); n > 0 && line.Values[n-1] == float64(value) {
		return
	}
	line.At, line.Values = append(line.At, at), append(line.Values, float64(value))
}

// forget frees the memory of a chart's old values. It removes all values of each line except the
// last value, which holds until the next value is added.
func (l *chartLines) forget() {
	for i := range l.lines {
		line := &l.lines[i]
		if n := len(line.At); n > 1 {
			line.At, line.Values = slices.Clone(line.At[n-1:]), slices.Clone(line.Values[n-1:])
		}
	}
}

func newCounts() *counts {
	return &counts{pods: map[types.UID]podCount{}, owners: map[types.UID]*ownerCount{}, services: map[string]*serviceCount{}}
}

// dropOld frees the memory for values from before the displayed window. The window is the part of
// the history that is drawn in full. dropOld drops all values of a chart except the last value of
// each line, which is still valid when the window starts.
//
// dropOld also drops deleted objects, except owners that still have pods.
func (c *counts) dropOld() {
	maps.DeleteFunc(c.owners, func(_ types.UID, o *ownerCount) bool { return o.deleted && o.existing == 0 })
	maps.DeleteFunc(c.services, func(_ string, s *serviceCount) bool { return !s.exists[services] && !s.exists[endpoints] })
	used := map[*chartLines]bool{}
	for _, o := range c.owners {
		used[o.lines] = true
	}
	for _, s := range c.services {
		used[s.lines] = true
	}
	unused := func(l *chartLines) bool { return !used[l] }
	c.ownerCharts, c.serviceCharts = slices.DeleteFunc(c.ownerCharts, unused), slices.DeleteFunc(c.serviceCharts, unused)
	for l := range used {
		if l != nil {
			l.forget()
		}
	}
}

// These are the names of lines in charts. Lines whose name contains "(status)" show fields of the
// owner's status. The lines existing and ready show the counted pods.
const (
	desiredLine   = "desired"
	existingLine  = "existing"
	readyLine     = "ready"
	availableLine = "available (status)"
	// statusReadyLine replaces availableLine if the owner's status has no availableReplicas.
	statusReadyLine = "ready (status)"
	addressLine     = "addresses"
	notReadyLine    = "addresses not ready"
	selectedLine    = "ready pods selected"
)

// observe updates the charts with a committed version of an object. The argument s has the fields
// of this version.
func (c *counts) observe(r *history.Record, s state) {
	o, deleted := &r.Commit.Object, r.Commit.Type == history.Deleted
	kind, known := kube.ByResource(o.Resource)
	switch {
	case o.Resource == pods:
		c.pod(o, r.At, s, deleted)
	case o.Resource == services, o.Resource == endpoints:
		c.service(o, r.At, s, deleted)
	case kind.Role == kube.Workload, !known:
		c.owner(o, r.At, s, deleted)
	}
}

// pod updates the charts of the pod's owner and of Services after a new version of a pod.
func (c *counts) pod(o *history.Object, at time.Duration, s state, deleted bool) {
	before := c.pods[o.UID]
	now := podCount{labels: o.Labels, active: s.active && !deleted, ready: s.active && s.ready && !deleted}
	if ref := o.ControllerRef(); ref != nil {
		now.owner = ref.UID
	}
	c.add(before, -1)
	c.add(now, +1)
	c.pods[o.UID] = now
	if deleted {
		delete(c.pods, o.UID)
	}
	c.updateLines(before.owner, at)
	if now.owner != before.owner {
		c.updateLines(now.owner, at)
	}
	if before.ready || now.ready {
		c.updateSelected(at, before.labels, now.labels)
	}
}

// add changes the counts of the pod's owner by n. The argument n is 1 to add the pod, and -1 to
// remove the pod.
func (c *counts) add(p podCount, n int) {
	existing, ready := 0, 0
	if p.active {
		existing = n
	}
	if p.ready {
		ready = n
	}
	c.addPods(p.owner, existing, ready)
}

// addPods adds numbers of pods to the counts of an owner. It also adds them to the counts of the
// owner's controller, and so on up to the topmost owner. For example, a Deployment counts the pods
// of its ReplicaSets.
func (c *counts) addPods(uid types.UID, existing, ready int) {
	for uid != "" {
		owner := c.ownerByUID(uid)
		owner.existing += existing
		owner.ready += ready
		uid = owner.owner
	}
}

// ownerByUID returns the counts of the owner with the given UID. An owner that has not occurred
// yet gets counts of 0.
func (c *counts) ownerByUID(uid types.UID) *ownerCount {
	if c.owners[uid] == nil {
		c.owners[uid] = &ownerCount{}
	}
	return c.owners[uid]
}

// setController sets the controller of an owner. It moves the numbers of the owner's pods from the
// old controller's counts to the new controller's counts.
//
// Owner references may form a cycle. To break the cycle, an owner gets no controller that it
// controls itself, directly or indirectly.
func (c *counts) setController(uid, controller types.UID) {
	owner := c.ownerByUID(uid)
	for above := controller; above != ""; above = c.ownerByUID(above).owner {
		if above == uid {
			controller = ""
			break
		}
	}
	if owner.owner == controller {
		return
	}
	c.addPods(owner.owner, -owner.existing, -owner.ready)
	owner.owner = controller
	c.addPods(controller, owner.existing, owner.ready)
}

// updateLines adds the current numbers of pods to the chart of an owner. It does the same for the
// owner's controller, and so on up to the topmost owner.
func (c *counts) updateLines(uid types.UID, at time.Duration) {
	for uid != "" {
		owner := c.ownerByUID(uid)
		if owner.lines != nil {
			owner.lines.hidden = owner.lines.hidden && owner.existing == 0
			owner.lines.set(existingLine, at, owner.existing)
			owner.lines.set(readyLine, at, owner.ready)
		}
		uid = owner.owner
	}
}

// owner updates the charts after a new version of an object that can control pods.
//
// The method owner adds a chart for the object, unless the chart of the object's controller
// includes the object's pods. For example, the chart of a Deployment includes the pods of its
// ReplicaSets.
func (c *counts) owner(o *history.Object, at time.Duration, s state, deleted bool) {
	owner := c.ownerByUID(o.UID)
	owner.deleted = deleted
	before, ref := owner.owner, o.ControllerRef()
	if ref == nil {
		ref = &history.Owner{}
	}
	c.setController(o.UID, ref.UID)
	kind, known := kube.ByResource(o.Resource)
	if controller, _ := kube.Named(ref.Kind); owner.lines == nil && !slices.Contains(controller.Controls, kind.Name) {
		owner.lines = &chartLines{title: "Pods of " + o.Resource + " " + o.Name, hidden: !known}
		c.ownerCharts = append(c.ownerCharts, owner.lines)
	}
	if owner.lines != nil {
		owner.lines.setReplicas(at, s, deleted)
	}
	c.updateLines(o.UID, at)
	if before != owner.owner {
		c.updateLines(before, at)
	}
}

// setReplicas adds an owner's spec.replicas and status.availableReplicas to the owner's chart. If
// the status has no availableReplicas, it adds readyReplicas instead.
func (l *chartLines) setReplicas(at time.Duration, s state, deleted bool) {
	available := availableLine
	if s.available == nil && !l.has(availableLine) {
		available, s.available = statusReadyLine, s.readyReplicas
	}
	if deleted {
		s.available = nil
	}
	if (deleted || s.terminating) && s.desired != nil {
		s.desired = new(int)
	}
	l.setOrZero(desiredLine, at, s.desired)
	l.setOrZero(available, at, s.available)
}

// setOrZero adds a value to a line. A nil value means that the object does not have the field.
// setOrZero then adds the value 0 if the line exists, and adds no line otherwise.
func (l *chartLines) setOrZero(name string, at time.Duration, value *int) {
	switch {
	case value != nil:
		l.set(name, at, *value)
	case l.has(name):
		l.set(name, at, 0)
	}
}

// has reports whether the chart has a line with the given name.
func (l *chartLines) has(name string) bool {
	return slices.ContainsFunc(l.lines, func(line Line) bool { return line.Name == name })
}

// service updates a Service's chart after a new version of the Service or of its Endpoints object.
func (c *counts) service(o *history.Object, at time.Duration, s state, deleted bool) {
	service := c.services[o.Name]
	if service == nil {
		service = &serviceCount{exists: map[string]bool{}, lines: &chartLines{title: "Endpoints " + o.Name}}
		c.services[o.Name] = service
		c.serviceCharts = append(c.serviceCharts, service.lines)
	}
	service.exists[o.Resource] = !deleted
	if o.Resource == endpoints {
		if deleted {
			s.addresses, s.notReady = 0, 0
		}
		service.lines.set(addressLine, at, s.addresses)
		service.lines.set(notReadyLine, at, s.notReady)
		return
	}
	service.selector = s.selector
	if deleted {
		service.selector = nil
	}
	service.lines.set(selectedLine, at, c.selected(service.selector))
}

// updateSelected updates the line "ready pods selected" in the charts of Services after a pod has
// changed. It updates each Service whose selector matches the pod's old or new labels.
func (c *counts) updateSelected(at time.Duration, before, now map[string]string) {
	for _, service := range c.services {
		if selects(service.selector, before) || selects(service.selector, now) {
			service.lines.set(selectedLine, at, c.selected(service.selector))
		}
	}
}

// selected returns the number of ready pods whose labels match a selector.
func (c *counts) selected(selector map[string]string) int {
	n := 0
	for _, pod := range c.pods {
		if pod.ready && selects(selector, pod.labels) {
			n++
		}
	}
	return n
}

// selects reports whether the labels of a pod match a Service's selector. An empty selector
// matches no pod.
func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return len(selector) > 0
}

// charts returns the charts that are not hidden. The charts of owners come first, then those of
// Services.
func (c *counts) charts() []Chart {
	var all []Chart
	for _, l := range slices.Concat(c.ownerCharts, c.serviceCharts) {
		if l.hidden {
			continue
		}
		slices.SortFunc(l.lines, func(a, b Line) int {
			return cmp.Compare(slices.Index(lineOrder, a.Name), slices.Index(lineOrder, b.Name))
		})
		all = append(all, Chart{Title: l.title, Lines: l.lines})
	}
	return all
}

// lineOrder has the names of the lines in the order in which a chart shows them.
var lineOrder = []string{desiredLine, existingLine, readyLine, availableLine, statusReadyLine, selectedLine, addressLine, notReadyLine}
