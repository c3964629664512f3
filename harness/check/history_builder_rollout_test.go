package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// publish asks for Endpoints to be made.
func (h *historyBuilder) publish(name string, subsets ...any) *requestStep {
	o := endpointsOf(name, subsets...)
	return h.request(history.Request{Verb: "create", Resource: endpointsResource, Namespace: namespace, Object: &o})
}

type fields = map[string]any

// rollingUpdate is a spec.strategy.
func rollingUpdate(maxSurge, maxUnavailable any) fields {
	return fields{"type": "RollingUpdate", "rollingUpdate": fields{"maxSurge": maxSurge, "maxUnavailable": maxUnavailable}}
}

// podTemplate is a template of some version; the hash is that of a ReplicaSet.
func podTemplate(app, version, hash string) fields {
	labels := fields{"app": app}
	if hash != "" {
		labels[hashLabel] = hash
	}
	return fields{"metadata": fields{"labels": labels}, "spec": fields{"image": version}}
}

func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// deployment makes a Deployment of version v1 that the subject has been told of,
// which selects by app=NAME.
func (h *historyBuilder) deployment(name string, replicas int, strategy fields) *history.Object {
	o := h.commit(history.Added, history.Object{
		Ref:        history.Ref{Resource: deploymentResource, Namespace: namespace, Name: name, UID: types.UID(name + "-uid")},
		Generation: 1,
		Body: encoded(fields{"spec": fields{
			"replicas": replicas, "strategy": strategy, "progressDeadlineSeconds": 600,
			"selector": fields{"matchLabels": fields{"app": name}}, "template": podTemplate(name, "v1", ""),
		}}),
	})
	h.deliver(o)
	return o
}

// newReplicaSetOf is a ReplicaSet of a Deployment for a version of its template.
func newReplicaSetOf(deployment, version string, replicas, desired int) history.Object {
	name := deployment + "-" + version
	return history.Object{
		Ref:         history.Ref{Resource: replicaSetResource, Namespace: namespace, Name: name, UID: types.UID(name + "-uid")},
		Generation:  1,
		Labels:      map[string]string{"app": deployment, hashLabel: version},
		Annotations: map[string]string{desiredReplicasAnnotation: fmt.Sprint(desired), revisionAnnotation: version[1:]},
		Owners:      []history.Owner{{Kind: deploymentKind, Name: deployment, UID: types.UID(deployment + "-uid"), Controller: true}},
		Body: encoded(fields{"spec": fields{
			"replicas": replicas, "selector": fields{"matchLabels": fields{"app": deployment, hashLabel: version}},
			"template": podTemplate(deployment, version, version),
		}}),
	}
}

// replicaSetOf makes such a ReplicaSet, so many of whose pods are available, that the
// subject has been told of.
func (h *historyBuilder) replicaSetOf(deployment, version string, replicas, available int) *history.Object {
	return h.replicaSetOfSize(deployment, version, replicas, available, 10)
}

// replicaSetOfSize makes one that was last scaled for so many replicas of its Deployment.
func (h *historyBuilder) replicaSetOfSize(deployment, version string, replicas, available, desired int) *history.Object {
	o := h.commit(history.Added, newReplicaSetOf(deployment, version, replicas, desired))
	h.deliver(o)
	o = h.status(o.Name, replicas)
	o = h.revise(o.Name, "status", fields{"readyReplicas": available, "availableReplicas": available})
	h.deliver(o)
	return o
}

// rollTo gives a Deployment a new template and tells the subject.
func (h *historyBuilder) rollTo(deployment, version string) {
	h.deliver(h.revise(deployment, "spec", fields{"template": podTemplate(deployment, version, "")}))
	h.wait(3 * time.Second)
}

// createReplicaSet asks for a new ReplicaSet.
func (h *historyBuilder) createReplicaSet(deployment, version string, replicas int) *requestStep {
	o := newReplicaSetOf(deployment, version, replicas, 10)
	o.Ref = history.Ref{Namespace: namespace, Name: o.Name}
	return h.request(history.Request{Verb: "create", Resource: replicaSetResource, Namespace: namespace, Object: &o})
}

// resize asks for other replicas of a ReplicaSet, from the version given.
func (h *historyBuilder) resize(set *history.Object, replicas int) *requestStep {
	o := *set
	var body map[string]fields
	if err := json.Unmarshal(o.Body, &body); err != nil {
		panic(err)
	}
	body["spec"]["replicas"] = replicas
	o.Body = encoded(body)
	return h.request(history.Request{Verb: "update", Resource: replicaSetResource, Namespace: namespace, Name: o.Name, Object: &o})
}

// renumber asks for another revision of a ReplicaSet, from the version given.
func (h *historyBuilder) renumber(set *history.Object, revision string) *requestStep {
	o := *set
	o.Annotations = maps.Clone(o.Annotations)
	o.Annotations[revisionAnnotation] = revision
	return h.request(history.Request{Verb: "update", Resource: replicaSetResource, Namespace: namespace, Name: o.Name, Object: &o})
}

// writeDeploymentStatus asks for parts of a Deployment's status to be changed, from the version
// given.
func (h *historyBuilder) writeDeploymentStatus(d *history.Object, status fields) *requestStep {
	o := edited(*d, "status", status)
	return h.request(history.Request{
		Verb: "update", Resource: deploymentResource, Subresource: "status", Namespace: namespace, Name: o.Name, Object: &o,
	})
}

// rollBack asks for another template of a Deployment, from the version given, with
// the wish for it gone.
func (h *historyBuilder) rollBack(d *history.Object, version string) *requestStep {
	o := edited(*d, "spec", fields{"template": podTemplate(d.Name, version, "")})
	o.Annotations = nil
	return h.request(history.Request{Verb: "update", Resource: deploymentResource, Namespace: namespace, Name: o.Name, Object: &o})
}

// deleteReplicaSet asks for a ReplicaSet to be deleted.
func (h *historyBuilder) deleteReplicaSet(name string) *requestStep {
	return h.request(history.Request{Verb: "delete", Resource: replicaSetResource, Namespace: namespace, Name: name})
}

// applyAndAnswer commits what a write of a ReplicaSet asks for and answers it, and tells
// the subject no more than that.
func (step *requestStep) applyAndAnswer() *history.Object {
	made := step.apply()
	if step.request.Verb == "create" {
		step.answered(201)
	} else {
		step.answered(200)
	}
	return made
}

// apply commits what a write of a ReplicaSet asks for; the answer is yet to come.
func (step *requestStep) apply() *history.Object {
	o := *step.request.Object
	o.Resource, o.UID = replicaSetResource, types.UID(o.Name+"-uid")
	event := history.Modified
	if step.request.Verb == "create" {
		event = history.Added
	}
	step.made = step.builder.commit(event, o)
	return step.made
}

// podOf makes a running pod of a ReplicaSet that the subject has been told of.
func (h *historyBuilder) podOf(set *history.Object, phase string) *history.Object {
	o := *h.pod(nil, set.Name)
	o.Owners = []history.Owner{{Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: true}}
	o.Labels = maps.Clone(set.Labels)
	o.Body = podBody(phase, phase == "Running")
	p := h.commit(history.Modified, o)
	h.deliver(p)
	return p
}

// service makes a Service, by default of the pods with app=NAME on port 80, that
// the subject has been told of.
func (h *historyBuilder) service(name string, spec fields) *history.Object {
	all := fields{
		"clusterIP": "10.0.0.1", "selector": fields{"app": name},
		"ports": []any{fields{"port": 80, "protocol": "TCP", "targetPort": 8080}},
	}
	maps.Copy(all, spec)
	o := h.commit(history.Added, history.Object{
		Ref:  history.Ref{Resource: serviceResource, Namespace: namespace, Name: name, UID: types.UID(name + "-service-uid")},
		Body: encoded(fields{"spec": all}),
	})
	h.deliver(o)
	return o
}

// endpoints makes Endpoints as the controller would label them, that the subject
// has been told of.
func (h *historyBuilder) endpoints(name string, subsets ...any) *history.Object {
	o := h.commit(history.Added, history.Object{
		Ref:    history.Ref{Resource: endpointsResource, Namespace: namespace, Name: name, UID: types.UID(fmt.Sprint(name, "-endpoints-", h.version))},
		Labels: map[string]string{managedByLabel: managedBy},
		Body:   encoded(fields{"subsets": subsets}),
	})
	h.deliver(o)
	return o
}

// leaderElectionEndpoints makes Endpoints which are a leader-election record.
func (h *historyBuilder) leaderElectionEndpoints(name string) *history.Object {
	return h.commit(history.Added, history.Object{
		Ref:         history.Ref{Resource: endpointsResource, Namespace: namespace, Name: name, UID: types.UID(name + "-lock-uid")},
		Annotations: map[string]string{leaderAnnotation: "{}"},
	})
}

// writeEndpoints asks for something to be done to Endpoints.
func (h *historyBuilder) writeEndpoints(verb, name string) *requestStep {
	r := history.Request{Verb: verb, Resource: endpointsResource, Namespace: namespace, Name: name}
	if verb == "create" {
		r.Name, r.Object = "", &history.Object{Ref: history.Ref{Namespace: namespace, Name: name}}
	}
	return h.request(r)
}

// remove deletes an object and tells the subject.
func (h *historyBuilder) remove(o *history.Object) { h.deliverGone(h.commit(history.Deleted, *o)) }

// podWithAddress gives a pod an address and containers, and tells the subject.
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
	done := h.commit(history.Modified, o)
	h.deliver(done)
	return done
}

// at is the address of a pod, as Endpoints have it.
func at(p *history.Object, ip string) fields {
	return fields{"ip": ip, "nodeName": "node-0", "targetRef": fields{
		"kind": "Pod", "namespace": namespace, "name": p.Name, "uid": p.UID,
	}}
}

// subset lists addresses at port 8080.
func subset(ready, notReady []any) fields {
	return fields{"addresses": ready, "notReadyAddresses": notReady, "ports": []any{fields{"port": 8080, "protocol": "TCP"}}}
}
