package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// publish records that the process sends a create of Endpoints with the given subsets. It
// records no response.
func (h *historyBuilder) publish(name string, subsets ...any) *requestStep {
	o := endpointsOf(name, subsets...)
	return h.request(history.Request{Verb: "create", Resource: objects.EndpointsResource, Namespace: namespace, Object: &o})
}

// fields are fields of an object, or of a part of an object such as its spec, as in JSON.
type fields = map[string]any

// rollingUpdate returns a spec.strategy of type RollingUpdate.
func rollingUpdate(maxSurge, maxUnavailable any) fields {
	return fields{"type": "RollingUpdate", "rollingUpdate": fields{"maxSurge": maxSurge, "maxUnavailable": maxUnavailable}}
}

// podTemplate returns a pod template with the label app. Each version, such as "v1", gives
// another template. The parameter hash is the label pod-template-hash; with "", the template has
// no such label.
func podTemplate(app, version, hash string) fields {
	labels := fields{"app": app}
	if hash != "" {
		labels[objects.PodTemplateHashLabel] = hash
	}
	return fields{"metadata": fields{"labels": labels}, "spec": fields{"image": version}}
}

// encoded returns a value as JSON.
func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// deployment records the commit and the delivery of a Deployment with the selector app=NAME. The
// Deployment has the pod template of version v1.
func (h *historyBuilder) deployment(name string, replicas int, strategy fields) *history.Object {
	o := h.commit(history.Added, history.Object{
		Ref:        history.Ref{Resource: objects.DeploymentResource, Namespace: namespace, Name: name, UID: types.UID(name + "-uid")},
		Generation: 1,
		Body: encoded(fields{"spec": fields{
			"replicas": replicas, "strategy": strategy, "progressDeadlineSeconds": 600,
			"selector": fields{"matchLabels": fields{"app": name}}, "template": podTemplate(name, "v1", ""),
		}}),
	})
	h.deliver(o)
	return o
}

// newReplicaSetOf returns a ReplicaSet of a Deployment, with the pod template of the given
// version. The parameter desired is the value of the desired-replicas annotation.
func newReplicaSetOf(deployment, version string, replicas, desired int) history.Object {
	name := deployment + "-" + version
	return history.Object{
		Ref:         history.Ref{Resource: objects.ReplicaSetResource, Namespace: namespace, Name: name, UID: types.UID(name + "-uid")},
		Generation:  1,
		Labels:      map[string]string{"app": deployment, objects.PodTemplateHashLabel: version},
		Annotations: map[string]string{objects.DesiredReplicasAnnotation: fmt.Sprint(desired), objects.RevisionAnnotation: version[1:]},
		Owners:      []history.Owner{{Kind: objects.DeploymentKind, Name: deployment, UID: types.UID(deployment + "-uid"), Controller: true}},
		Body: encoded(fields{"spec": fields{
			"replicas": replicas, "selector": fields{"matchLabels": fields{"app": deployment, objects.PodTemplateHashLabel: version}},
			"template": podTemplate(deployment, version, version),
		}}),
	}
}

// replicaSetOf calls replicaSetOfSize with 10 as the value of the desired-replicas annotation.
func (h *historyBuilder) replicaSetOf(deployment, version string, replicas, available int) *history.Object {
	return h.replicaSetOfSize(deployment, version, replicas, available, 10)
}

// replicaSetOfSize records the commit and the delivery of a ReplicaSet of a Deployment. The
// ReplicaSet's status reports the given number of available pods.
func (h *historyBuilder) replicaSetOfSize(deployment, version string, replicas, available, desired int) *history.Object {
	o := h.commit(history.Added, newReplicaSetOf(deployment, version, replicas, desired))
	h.deliver(o)
	o = h.status(o.Name, replicas)
	o = h.revise(o.Name, "status", fields{"readyReplicas": available, "availableReplicas": available})
	h.deliver(o)
	return o
}

// rollTo records the commit and the delivery of a Deployment with the given version of the pod
// template. It then adds three seconds without records.
func (h *historyBuilder) rollTo(deployment, version string) {
	h.deliver(h.revise(deployment, "spec", fields{"template": podTemplate(deployment, version, "")}))
	h.wait(3 * time.Second)
}

// createReplicaSet records that the process sends a create of a ReplicaSet. It records no
// response.
func (h *historyBuilder) createReplicaSet(deployment, version string, replicas int) *requestStep {
	o := newReplicaSetOf(deployment, version, replicas, 10)
	o.Ref = history.Ref{Namespace: namespace, Name: o.Name}
	h.recordSize(&o)
	return h.request(history.Request{Verb: "create", Resource: objects.ReplicaSetResource, Namespace: namespace, Object: &o})
}

// resize records that the process sends an update that changes the spec.replicas of a
// ReplicaSet. The update contains the resourceVersion of set.
func (h *historyBuilder) resize(set *history.Object, replicas int) *requestStep {
	o := *set
	var body map[string]fields
	if err := json.Unmarshal(o.Body, &body); err != nil {
		panic(err)
	}
	body["spec"]["replicas"] = replicas
	o.Body = encoded(body)
	h.recordSize(&o)
	return h.request(history.Request{Verb: "update", Resource: objects.ReplicaSetResource, Namespace: namespace, Name: o.Name, Object: &o})
}

// recordSize sets the annotations desired-replicas and max-replicas of a ReplicaSet to the values that
// the committed Deployment implies.
func (h *historyBuilder) recordSize(set *history.Object) {
	d, err := objects.NewDecoder().Deployment(h.find(set.Owners[0].Name))
	if err != nil {
		panic(err)
	}
	set.Annotations = maps.Clone(set.Annotations)
	set.Annotations[objects.DesiredReplicasAnnotation] = strconv.Itoa(d.Replicas)
	set.Annotations[objects.MaxReplicasAnnotation] = strconv.Itoa(d.MaxPods())
}

// renumber records that the process sends an update that changes a ReplicaSet's revision
// annotation. The update contains the resourceVersion of set.
func (h *historyBuilder) renumber(set *history.Object, revision string) *requestStep {
	o := *set
	o.Annotations = maps.Clone(o.Annotations)
	o.Annotations[objects.RevisionAnnotation] = revision
	if o.Annotations[objects.RevisionAnnotation] > set.Annotations[objects.RevisionAnnotation] {
		o.Annotations[objects.RevisionHistoryAnnotation] = strings.TrimPrefix(o.Annotations[objects.RevisionHistoryAnnotation]+","+set.Annotations[objects.RevisionAnnotation], ",")
	}
	return h.request(history.Request{Verb: "update", Resource: objects.ReplicaSetResource, Namespace: namespace, Name: o.Name, Object: &o})
}

// writeDeploymentStatus records that the process sends an update of a Deployment's status. The
// update contains the resourceVersion of d.
func (h *historyBuilder) writeDeploymentStatus(d *history.Object, status fields) *requestStep {
	o := edited(*d, "status", status)
	return h.request(history.Request{
		Verb: "update", Resource: objects.DeploymentResource, Subresource: "status", Namespace: namespace, Name: o.Name, Object: &o,
	})
}

// rollBack records that the process sends the update of a Deployment that executes a rollback.
// The update sets the pod template of the given version and removes the rollback annotation.
func (h *historyBuilder) rollBack(d *history.Object, version string) *requestStep {
	o := edited(*d, "spec", fields{"template": podTemplate(d.Name, version, "")})
	o.Annotations = nil
	return h.request(history.Request{Verb: "update", Resource: objects.DeploymentResource, Namespace: namespace, Name: o.Name, Object: &o})
}

// deleteReplicaSet records that the process sends a delete of a ReplicaSet.
func (h *historyBuilder) deleteReplicaSet(name string) *requestStep {
	return h.request(history.Request{Verb: "delete", Resource: objects.ReplicaSetResource, Namespace: namespace, Name: name})
}

// applyAndAnswer records the commit of the ReplicaSet that a request writes, and the response.
// It records no watch event.
func (step *requestStep) applyAndAnswer() *history.Object {
	written := step.apply()
	if step.request.Verb == "create" {
		step.answered(201)
	} else {
		step.answered(200)
	}
	return written
}

// apply records the commit of the ReplicaSet that a request writes. It records neither a
// response nor a watch event.
func (step *requestStep) apply() *history.Object {
	o := *step.request.Object
	o.Resource, o.UID = objects.ReplicaSetResource, types.UID(o.Name+"-uid")
	event := history.Modified
	if step.request.Verb == "create" {
		event = history.Added
	}
	step.made = step.builder.commit(event, o)
	return step.made
}

// podOf records the commit and the delivery of a pod of a ReplicaSet. The pod is in the given
// phase.
func (h *historyBuilder) podOf(set *history.Object, phase string) *history.Object {
	o := *h.pod(nil, set.Name)
	o.Owners = []history.Owner{{Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: true}}
	o.Labels = maps.Clone(set.Labels)
	o.Body = podBody(phase, phase == "Running")
	p := h.commit(history.Modified, o)
	h.deliver(p)
	return p
}

// service records the commit and the delivery of a Service with the selector app=NAME and port
// 80. The fields in the parameter spec replace those of the Service's spec.
func (h *historyBuilder) service(name string, spec fields) *history.Object {
	all := fields{
		"clusterIP": "10.0.0.1", "selector": fields{"app": name},
		"ports": []any{fields{"port": 80, "protocol": "TCP", "targetPort": 8080}},
	}
	maps.Copy(all, spec)
	o := h.commit(history.Added, history.Object{
		Ref:  history.Ref{Resource: objects.ServiceResource, Namespace: namespace, Name: name, UID: types.UID(name + "-service-uid")},
		Body: encoded(fields{"spec": all}),
	})
	h.deliver(o)
	return o
}

// endpoints records the commit and the delivery of Endpoints with the managed-by label that the
// Endpoints controller sets.
func (h *historyBuilder) endpoints(name string, subsets ...any) *history.Object {
	o := h.commit(history.Added, history.Object{
		Ref:    history.Ref{Resource: objects.EndpointsResource, Namespace: namespace, Name: name, UID: types.UID(fmt.Sprint(name, "-endpoints-", h.version))},
		Labels: map[string]string{objects.ManagedByLabel: objects.EndpointControllerName},
		Body:   encoded(fields{"subsets": subsets}),
	})
	h.deliver(o)
	return o
}

// leaderElectionEndpoints records the commit of Endpoints with the leader annotation. It records
// no watch event.
func (h *historyBuilder) leaderElectionEndpoints(name string) *history.Object {
	return h.commit(history.Added, history.Object{
		Ref:         history.Ref{Resource: objects.EndpointsResource, Namespace: namespace, Name: name, UID: types.UID(name + "-lock-uid")},
		Annotations: map[string]string{objects.LeaderAnnotation: "{}"},
	})
}

// writeEndpoints records that the process sends a write of Endpoints. The request contains no
// addresses.
func (h *historyBuilder) writeEndpoints(verb, name string) *requestStep {
	r := history.Request{Verb: verb, Resource: objects.EndpointsResource, Namespace: namespace, Name: name}
	if verb == "create" {
		r.Name, r.Object = "", &history.Object{Ref: history.Ref{Namespace: namespace, Name: name}}
	}
	return h.request(r)
}

// remove records the deletion of an object and the delivery of its watch event.
func (h *historyBuilder) remove(o *history.Object) { h.deliverGone(h.commit(history.Deleted, *o)) }

// podWithAddress records the commit and the delivery of a new version of the pod p with the
// given IP address. The fields in the parameter spec replace those of the pod's spec.
func (h *historyBuilder) podWithAddress(p *history.Object, ip string, ready bool, spec fields) *history.Object {
	all := fields{"nodeName": "node-0", "containers": []any{fields{"name": "c", "ports": []any{
		fields{"name": "http", "containerPort": 8080, "protocol": "TCP"},
	}}}}
	maps.Copy(all, spec)
	o := *p
	readiness := map[bool]string{true: "True", false: "False"}[ready]
	o.Body = encoded(fields{"spec": all, "status": fields{
		"phase": "Running", "podIP": ip, "podIPs": []any{fields{"ip": ip}},
		"conditions": []any{fields{"type": "Ready", "status": readiness}},
	}})
	pod := h.commit(history.Modified, o)
	h.deliver(pod)
	return pod
}

// at returns the address entry for a pod in a subset of Endpoints, with the given IP.
func at(p *history.Object, ip string) fields {
	return fields{"ip": ip, "nodeName": "node-0", "targetRef": fields{
		"kind": "Pod", "namespace": namespace, "name": p.Name, "uid": p.UID,
	}}
}

// subset returns a subset of Endpoints with the given addresses and port 8080.
func subset(ready, notReady []any) fields {
	return fields{"addresses": ready, "notReadyAddresses": notReady, "ports": []any{fields{"port": 8080, "protocol": "TCP"}}}
}
