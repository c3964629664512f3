package check

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// classify derives from a request why the process sent it, such as to create a pod for a
// ReplicaSet. It sets the verb of c, and the ReplicaSet, ReplicationController, Deployment or
// Service that the controller was syncing.
func (p *process) classify(c *call, r *history.Request) {
	kind := objects.OwnerKindByResource(r.Resource)
	if kind != nil && !p.tested.reconciles(kind.Name) {
		kind = nil
	}
	if (kind != nil || r.Resource == objects.DeploymentResource) && (r.Subresource == "" || r.Subresource == "status" && r.Verb != "get") {
		c.object, c.reads = objectName{r.Resource, r.Namespace, r.Name}, r.Verb == "get"
		if r.Verb == "create" && r.Object != nil {
			c.object.name = r.Object.Name
		}
	}
	switch {
	case r.IsDryRun(): // it has no effect
	case p.tested.has(kube.RollsOut) && (r.Resource == objects.DeploymentResource || r.Resource == objects.ReplicaSetResource && p.isRolloutCall(r)):
		p.classifyRollout(c, r)
	case p.tested.has(kube.PublishesAddresses) && r.Resource == objects.EndpointsResource && r.IsWrite():
		p.classifyEndpointsWrite(c, r)
	case r.Resource == objects.PodResource && r.Verb == "create" && r.Object != nil:
		if ref := r.Object.ControllerRef(); ref != nil && objects.OwnerKindByName(ref.Kind) != nil && p.tested.reconciles(ref.Kind) {
			c.verb, c.ownerState = callCreatePod, p.ownerState(ref.UID)
			c.key += string(ref.UID)
		}
	case r.Resource == objects.PodResource && r.Verb == "delete":
		c.verb = callDeletePod
		c.pod = p.view.lookup(r.Namespace, r.Name, r.PreconditionUID)
		if c.pod != nil {
			c.ownerState = p.deletingOwner(c.pod)
		}
	case r.Resource == objects.PodResource && (r.Verb == "patch" || r.Verb == "update"):
		c.verb = callAdoptOrRelease
		c.pod = p.view.lookup(r.Namespace, r.Name, "")
		// An error means that the API server rejects the patch, so the pod keeps its owner.
		c.ownershipChange, _ = ownershipChangeOf(r)
		if c.ownershipChange.owner != "" && !p.mayBeGeneric(c.ownershipChange.owner) {
			c.ownerState = p.ownerState(c.ownershipChange.owner)
		}
	case kind != nil && (r.Verb == "update" || r.Verb == "patch"):
		c.verb = callStatus
		if o := p.view.ownerNamed(r.Resource, r.Namespace, r.Name); o != nil {
			c.ownerState = p.ownerState(o.UID)
			c.mustReportFailure, c.ownerState.statusBounds.unreportedFailure = c.ownerState.statusBounds.unreportedFailure, false
		}
	case kind != nil && r.Verb == "get":
		c.verb = callReadOwner
	}
}

// deletingOwner returns the state of the owner for which the process deletes a pod. It returns
// nil if no ReplicaSet or ReplicationController under test recently controlled the cached pod.
//
// In most cases, this owner is the pod's last controller in the cache. If the process has adopted
// the pod, and its cache does not show this yet, it is the adopting owner.
func (p *process) deletingOwner(target *objects.Pod) *ownerState {
	if uid, ok := p.adopted[target.UID]; ok {
		return p.ownerState(uid)
	}
	seen := p.view.cachedPodStates(target.UID)
	for i := len(seen) - 1; i >= 0; i-- {
		if p.tested.manages(seen[i].pod) {
			return p.ownerState(seen[i].pod.Controller.UID)
		}
	}
	return nil
}

// isRolloutCall reports whether the Deployment controller, and not the ReplicaSet controller,
// sent a write of a ReplicaSet. The ReplicaSet controller writes only the status of ReplicaSets.
func (p *process) isRolloutCall(r *history.Request) bool {
	switch r.Verb {
	case "create", "update", "patch", "delete":
		return r.Subresource != "status" && p.deploymentOf(r) != ""
	}
	return false
}

// deploymentOf returns the UID of the Deployment that controls the ReplicaSet in a request. It
// returns "" if no Deployment controls the ReplicaSet, or if the controller is unknown.
func (p *process) deploymentOf(r *history.Request) types.UID {
	if r.Object != nil {
		if ref := r.Object.ControllerRef(); ref != nil && ref.Kind == objects.DeploymentKind {
			return ref.UID
		}
	}
	if set := p.view.ownerNamed(r.Resource, r.Namespace, r.Name); set != nil && set.Controller.Kind == objects.DeploymentKind {
		return set.Controller.UID
	}
	return ""
}

// classifyRollout fills the fields of c for a request of the Deployment controller. It sets the
// model's state of the Deployment and the work queue key. If the request sets the spec.replicas of
// a ReplicaSet, it also sets the scaling. For an update of the Deployment, which in most cases
// writes its status, it also sets the verb.
//
// classifyRollout does nothing if the request is a list or its Deployment is unknown.
func (p *process) classifyRollout(c *call, r *history.Request) {
	var uid types.UID
	if r.Resource == objects.ReplicaSetResource {
		uid = p.deploymentOf(r)
	} else {
		uid = p.view.uidByName[objectName{r.Resource, r.Namespace, r.Name}]
	}
	if uid == "" {
		return // the request is a list, or its Deployment is not in the cache
	}
	c.rollout = p.rollout(uid)
	c.queueKey = workQueueKey{process: p, uid: uid}
	c.rollout.recordCall(c.sentAt)
	switch {
	case r.Resource == objects.ReplicaSetResource:
		c.scaling = p.scalingOf(c, r)
	case r.Verb == "update" && r.Object != nil && r.Object.Version != 0:
		c.verb = callStatus
		c.rollout.hasSeen(r.Object.Version)
	}
}

// scalingOf describes a write that sets the spec.replicas of a ReplicaSet. It returns nil if the
// write does not set this field, or if the cache does not contain the ReplicaSet that it changes.
func (p *process) scalingOf(c *call, r *history.Request) *scaling {
	if r.Verb == "create" && r.Object != nil {
		set, err := p.view.decoder.DecodeOwner(objects.OwnerKindByResource(objects.ReplicaSetResource), r.Object)
		if err != nil {
			return nil // the API server rejects an invalid object
		}
		s := c.rollout.newScaling(r.Object.Name, set.Template, 0, set.Replicas)
		s.written = r.Object.Annotations
		return s
	}
	cached := p.view.ownerNamed(objects.ReplicaSetResource, r.Namespace, r.Name)
	to, ok := replicasOf(r)
	if !ok || cached == nil {
		return nil
	}
	from := cached.Version
	if r.Object != nil && r.Object.Version != 0 {
		from = r.Object.Version
	}
	c.fromVersion = from
	s := c.rollout.newScaling(r.Name, cached.Template, from, to)
	s.cached = cached.Replicas
	s.from = unknownSize
	if base := objects.Cached[objects.Owner](p.view.decoder, cached.UID, from); base != nil {
		s.from = base.Replicas
	}
	if r.Object != nil {
		s.written = r.Object.Annotations
	}
	return s
}

// replicasOf returns the value to which an update or patch sets spec.replicas, and true. It
// returns false if the request does not set spec.replicas.
func replicasOf(r *history.Request) (int, bool) {
	var body struct{ Spec struct{ Replicas *int } }
	switch {
	case r.Object != nil:
		_ = objects.Unmarshal(r.Object.Body, &body) // the API server rejects an invalid object
	case strings.Contains(r.PatchType, "json-patch"):
		var operations []struct {
			Path  string
			Value *int
		}
		_ = json.Unmarshal(r.Patch, &operations) // a value that is not a number stays nil
		for _, op := range operations {
			if op.Path == "/spec/replicas" && op.Value != nil {
				return *op.Value, true
			}
		}
	default:
		_ = objects.Unmarshal(r.Patch, &body)
	}
	if body.Spec.Replicas == nil {
		return 0, false
	}
	return *body.Spec.Replicas, true
}

// recordRolloutAnswer records the API server's response to a request of the Deployment controller.
// It stores the ReplicaSet in the response, because the controller may act on this version before
// its watch event arrives.
func (p *process) recordRolloutAnswer(c *call, r *history.Response, at time.Duration) {
	c.rollout.callAnswered(at)
	c.rollout.recordOutcome(r, c.sentAt, at)
	if c.verb == callStatus && r.OK() {
		c.rollout.recordStatusWrite(r, c.sentAt, at)
	}
	if c.holders != nil && r.Code == http.StatusConflict {
		c.holders.rejectedAt = at
		c.rollout.takenNames[c.scaling.name] = c.holders
	}
	if !r.OK() || r.Object == nil || r.Object.Resource != objects.ReplicaSetResource || len(r.Object.Body) == 0 {
		return
	}
	if set, err := p.view.decoder.Owner(objects.OwnerKindByResource(objects.ReplicaSetResource), r.Object); err == nil && !set.Terminating {
		c.rollout.recordWrite(set, c.fromVersion, at)
	}
}

// recordLiveRead records a ReplicaSet that the process read from the API server instead of its
// cache. The Deployment controller does so after AlreadyExists, because its own earlier create
// may have succeeded although the response was lost.
func (p *process) recordLiveRead(o *history.Object, at time.Duration) {
	if o.Resource != objects.ReplicaSetResource || len(o.Body) == 0 {
		return
	}
	set, err := p.view.decoder.Owner(objects.OwnerKindByResource(objects.ReplicaSetResource), o)
	if err == nil && !set.Terminating && p.view.deployments[set.Controller.UID] != nil {
		p.rollout(set.Controller.UID).recordReplicaSet(set, at)
	}
}

// classifyEndpointsWrite sets the Service and the work queue key of c, which describes a write of
// Endpoints. The Service has the same namespace and name as the Endpoints.
func (p *process) classifyEndpointsWrite(c *call, r *history.Request) {
	name := r.Name
	if name == "" && r.Object != nil {
		name = r.Object.Name
	}
	if name == "" {
		return
	}
	c.serviceState = p.serviceState(objectName{objects.ServiceResource, r.Namespace, name})
	var base history.Version
	if r.Object != nil {
		base = r.Object.Version
	}
	c.serviceState.recordWrite(p, c.sentAt, base)
	c.queueKey = workQueueKey{process: p, service: c.serviceState.name}
	if r.Verb == "create" {
		c.key += name
	}
}

// isRetriedByClient reports whether client-go resends the request after this response, without a
// new sync of the controller. client-go does so after status 429 or 5xx with a Retry-After
// header.
func isRetriedByClient(r *history.Response) bool {
	return r.RetryAfter != nil && (r.Code == 429 || r.Code >= 500)
}

// isFailure reports whether the response is an error that makes the controller retry. A 404 is no
// failure of a delete, adoption, release or write of Endpoints, because nothing is left to do. A
// 422 is no failure of an adoption or release.
func isFailure(answered *answeredCall) bool {
	switch {
	case answered.response.OK():
		return false
	case answered.verb == callDeletePod, answered.serviceState != nil:
		return answered.response.Code != 404
	case answered.verb == callAdoptOrRelease:
		return answered.response.Code != 404 && answered.response.Code != 422
	case answered.generic != nil && answered.generic.deletes:
		return answered.response.Code != 404
	}
	return true
}

// deletesActivePod reports whether the cache contains the pod that the request deletes, and the
// pod is active there. An active pod is not terminating, Failed or Succeeded.
func (c *call) deletesActivePod() bool {
	p := c.process.view.pods[c.pod.UID]
	return p != nil && p.Active
}

// reportedOwner returns the ReplicaSet or ReplicationController whose status the request writes, as
// the cache contains it. It returns nil in four cases, in which checks skip the request:
//
//   - The request does not write a status.
//   - The cache does not contain the object, or the process has received no pods yet.
//   - The resourceVersion in the request is not the one in the cache.
//   - The process has read the cached version also from the API server, as after a conflict. The
//     controller may then write the status of an earlier attempt again.
func (c *call) reportedOwner(r *history.Request) *objects.Owner {
	if c.verb != callStatus || c.ownerState == nil || r.Subresource != "status" || r.Object == nil || !c.ownerState.synced {
		return nil
	}
	o := c.ownerState.owner()
	if r.Object.Version != o.Version || o.Version == c.process.liveReads[c.ownerState.uid].version {
		return nil
	}
	return o
}

// objectUpdate describes an update request for an object other than a pod. The check
// needless-writes reads it to find updates that change nothing.
type objectUpdate struct {
	history.Ref
	// unchanged is true if the update would change neither the addresses nor the labels of the
	// Endpoints in the cache. It is false for objects of other kinds.
	unchanged bool
	// truncated is true if the update writes Endpoints that list only 1000 of the addresses. A
	// controller may write them in each sync (allowed behavior truncated-endpoints).
	truncated bool
	// committedVersion is the resourceVersion of the object in etcd when the process sent the
	// update. It is 0 if the model does not know the object.
	committedVersion history.Version
}

// updateOf describes the update that a request makes. It returns nil for other verbs, for
// updates of pods, and for dry runs.
func (p *process) updateOf(r *history.Request) *objectUpdate {
	if r.Verb != "update" || r.Object == nil || r.Resource == objects.PodResource || r.IsDryRun() {
		return nil
	}
	u := &objectUpdate{Ref: r.Object.Ref}
	u.Resource, u.Namespace, u.Name = r.Resource, r.Namespace, r.Name
	if r.Resource == objects.EndpointsResource {
		u.unchanged = sameContent(p.view.endpointsNamed(serviceName(u.Ref)), r.Object)
		u.truncated = r.Object.Annotations[objects.OverCapacityAnnotation] != ""
	}
	return u
}

// sameContent reports whether an update of Endpoints would change nothing. It is true if
// resourceVersion, addresses and labels in the request o are those of the cached Endpoints e. It is
// false for Endpoints that list only 1000 of the addresses. A controller may write them in each
// sync (allowed behavior truncated-endpoints).
func sameContent(e *objects.Endpoints, o *history.Object) bool {
	return e != nil && e.Version == o.Version && len(e.Body) > 0 && sameSubsets(e.Body, o.Body) &&
		maps.Equal(e.Labels, o.Labels) && e.OverCapacity == "" && o.Annotations[objects.OverCapacityAnnotation] == ""
}

// sameSubsets reports whether the bodies of two Endpoints list the same addresses and ports, in any order.
func sameSubsets(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	first, err := sortedSubsets(a)
	if err != nil {
		return false
	}
	second, err := sortedSubsets(b)
	return err == nil && slices.Equal(first, second)
}

// sortedSubsets returns the subsets in the body of Endpoints as sorted texts. The addresses and ports of
// each subset are sorted, too.
func sortedSubsets(body json.RawMessage) ([]string, error) {
	var endpoints struct {
		Subsets []map[string][]json.RawMessage
	}
	if err := objects.Unmarshal(body, &endpoints); err != nil {
		return nil, err
	}
	var all []string
	for _, subset := range endpoints.Subsets {
		var lists []string
		for name, items := range subset {
			var texts []string
			for _, item := range items {
				texts = append(texts, string(item))
			}
			slices.Sort(texts)
			lists = append(lists, name+strings.Join(texts, ","))
		}
		slices.Sort(lists)
		all = append(all, strings.Join(lists, ";"))
	}
	slices.Sort(all)
	return all, nil
}

// anyCachedState reports whether the given function returns true for any recent cached state of the
// request's pod. The controller may have acted on any of the states in the cache during the recent
// window.
func (c *call) anyCachedState(matches func(cachedPodState) bool) bool {
	for _, s := range c.process.view.cachedPodStates(c.pod.UID) {
		if matches(s) {
			return true
		}
	}
	return false
}
