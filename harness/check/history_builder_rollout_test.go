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
func (s *story) publish(name string, subsets ...any) *ask {
	o := endpointsOf(name, subsets...)
	return s.request(history.Request{Verb: "create", Resource: endpointsResource, Namespace: namespace, Object: &o})
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
func (s *story) deployment(name string, replicas int, strategy fields) *history.Object {
	o := s.commit(history.Added, history.Object{
		Ref:        history.Ref{Resource: deploymentResource, Namespace: namespace, Name: name, UID: types.UID(name + "-uid")},
		Generation: 1,
		Body: encoded(fields{"spec": fields{
			"replicas": replicas, "strategy": strategy, "progressDeadlineSeconds": 600,
			"selector": fields{"matchLabels": fields{"app": name}}, "template": podTemplate(name, "v1", ""),
		}}),
	})
	s.deliver(o)
	return o
}

// setOf is a ReplicaSet of a Deployment for a version of its template.
func setOf(deployment, version string, replicas, desired int) history.Object {
	name := deployment + "-" + version
	return history.Object{
		Ref:         history.Ref{Resource: setResource, Namespace: namespace, Name: name, UID: types.UID(name + "-uid")},
		Generation:  1,
		Labels:      map[string]string{"app": deployment, hashLabel: version},
		Annotations: map[string]string{desiredAnnotation: fmt.Sprint(desired), revisionAnnotation: version[1:]},
		Owners:      []history.Owner{{Kind: deploymentKind, Name: deployment, UID: types.UID(deployment + "-uid"), Controller: true}},
		Body: encoded(fields{"spec": fields{
			"replicas": replicas, "selector": fields{"matchLabels": fields{"app": deployment, hashLabel: version}},
			"template": podTemplate(deployment, version, version),
		}}),
	}
}

// set makes such a ReplicaSet, so many of whose pods are available, that the
// subject has been told of.
func (s *story) set(deployment, version string, replicas, available int) *history.Object {
	return s.setFor(deployment, version, replicas, available, 10)
}

// setFor makes one that was last scaled for so many replicas of its Deployment.
func (s *story) setFor(deployment, version string, replicas, available, desired int) *history.Object {
	o := s.commit(history.Added, setOf(deployment, version, replicas, desired))
	s.deliver(o)
	o = s.status(o.Name, replicas)
	o = s.revise(o.Name, "status", fields{"readyReplicas": available, "availableReplicas": available})
	s.deliver(o)
	return o
}

// rollTo gives a Deployment a new template and tells the subject.
func (s *story) rollTo(deployment, version string) {
	s.deliver(s.revise(deployment, "spec", fields{"template": podTemplate(deployment, version, "")}))
	s.wait(3 * time.Second)
}

// make asks for a new ReplicaSet.
func (s *story) make(deployment, version string, replicas int) *ask {
	o := setOf(deployment, version, replicas, 10)
	o.Ref = history.Ref{Namespace: namespace, Name: o.Name}
	return s.request(history.Request{Verb: "create", Resource: setResource, Namespace: namespace, Object: &o})
}

// resize asks for other replicas of a ReplicaSet, from the version given.
func (s *story) resize(set *history.Object, replicas int) *ask {
	o := *set
	var body map[string]fields
	if err := json.Unmarshal(o.Body, &body); err != nil {
		panic(err)
	}
	body["spec"]["replicas"] = replicas
	o.Body = encoded(body)
	return s.request(history.Request{Verb: "update", Resource: setResource, Namespace: namespace, Name: o.Name, Object: &o})
}

// renumber asks for another revision of a ReplicaSet, from the version given.
func (s *story) renumber(set *history.Object, revision string) *ask {
	o := *set
	o.Annotations = maps.Clone(o.Annotations)
	o.Annotations[revisionAnnotation] = revision
	return s.request(history.Request{Verb: "update", Resource: setResource, Namespace: namespace, Name: o.Name, Object: &o})
}

// report asks for parts of a Deployment's status to be changed, from the version
// given.
func (s *story) report(d *history.Object, status fields) *ask {
	o := edited(*d, "status", status)
	return s.request(history.Request{
		Verb: "update", Resource: deploymentResource, Subresource: "status", Namespace: namespace, Name: o.Name, Object: &o,
	})
}

// rollBack asks for another template of a Deployment, from the version given, with
// the wish for it gone.
func (s *story) rollBack(d *history.Object, version string) *ask {
	o := edited(*d, "spec", fields{"template": podTemplate(d.Name, version, "")})
	o.Annotations = nil
	return s.request(history.Request{Verb: "update", Resource: deploymentResource, Namespace: namespace, Name: o.Name, Object: &o})
}

// trim asks for a ReplicaSet to be deleted.
func (s *story) trim(name string) *ask {
	return s.request(history.Request{Verb: "delete", Resource: setResource, Namespace: namespace, Name: name})
}

// takes commits what a write of a ReplicaSet asks for and answers it, and tells
// the subject no more than that.
func (a *ask) takes() *history.Object {
	made := a.lands()
	if a.request.Verb == "create" {
		a.answered(201)
	} else {
		a.answered(200)
	}
	return made
}

// lands commits what a write of a ReplicaSet asks for; the answer is yet to come.
func (a *ask) lands() *history.Object {
	o := *a.request.Object
	o.Resource, o.UID = setResource, types.UID(o.Name+"-uid")
	event := history.Modified
	if a.request.Verb == "create" {
		event = history.Added
	}
	a.made = a.story.commit(event, o)
	return a.made
}

// podOf makes a running pod of a ReplicaSet that the subject has been told of.
func (s *story) podOf(set *history.Object, phase string) *history.Object {
	o := *s.pod(nil, set.Name)
	o.Owners = []history.Owner{{Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: true}}
	o.Labels = maps.Clone(set.Labels)
	o.Body = podBody(phase, phase == "Running")
	p := s.commit(history.Modified, o)
	s.deliver(p)
	return p
}

// service makes a Service, by default of the pods with app=NAME on port 80, that
// the subject has been told of.
func (s *story) service(name string, spec fields) *history.Object {
	all := fields{
		"clusterIP": "10.0.0.1", "selector": fields{"app": name},
		"ports": []any{fields{"port": 80, "protocol": "TCP", "targetPort": 8080}},
	}
	maps.Copy(all, spec)
	o := s.commit(history.Added, history.Object{
		Ref:  history.Ref{Resource: serviceResource, Namespace: namespace, Name: name, UID: types.UID(name + "-service-uid")},
		Body: encoded(fields{"spec": all}),
	})
	s.deliver(o)
	return o
}

// endpoints makes Endpoints as the controller would label them, that the subject
// has been told of.
func (s *story) endpoints(name string, subsets ...any) *history.Object {
	o := s.commit(history.Added, history.Object{
		Ref:    history.Ref{Resource: endpointsResource, Namespace: namespace, Name: name, UID: types.UID(fmt.Sprint(name, "-endpoints-", s.version))},
		Labels: map[string]string{managedByLabel: managedBy},
		Body:   encoded(fields{"subsets": subsets}),
	})
	s.deliver(o)
	return o
}

// lock makes Endpoints that are a leader election's record.
func (s *story) lock(name string) *history.Object {
	return s.commit(history.Added, history.Object{
		Ref:         history.Ref{Resource: endpointsResource, Namespace: namespace, Name: name, UID: types.UID(name + "-lock-uid")},
		Annotations: map[string]string{leaderAnnotation: "{}"},
	})
}

// writeEndpoints asks for something to be done to Endpoints.
func (s *story) writeEndpoints(verb, name string) *ask {
	r := history.Request{Verb: verb, Resource: endpointsResource, Namespace: namespace, Name: name}
	if verb == "create" {
		r.Name, r.Object = "", &history.Object{Ref: history.Ref{Namespace: namespace, Name: name}}
	}
	return s.request(r)
}

// remove deletes an object and tells the subject.
func (s *story) remove(o *history.Object) { s.deliverGone(s.commit(history.Deleted, *o)) }

// reached gives a pod an address and containers, and tells the subject.
func (s *story) reached(p *history.Object, ip string, ready bool, spec fields) *history.Object {
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
	done := s.commit(history.Modified, o)
	s.deliver(done)
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
