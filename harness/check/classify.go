package check

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// This file finds out what the calls about Deployments and Endpoints do.

// rollout returns the account with a Deployment, opening it if need be.
func (p *process) rollout(deployment types.UID) *rollout {
	r := p.rollouts[deployment]
	if r == nil {
		r = newRollout(p, deployment)
		p.rollouts[deployment] = r
	}
	return r
}

// isRollout reports whether a request about ReplicaSets is of the controller of
// Deployments. The other one writes to their status only.
func (p *process) isRollout(r *history.Request) bool {
	switch r.Verb {
	case "create", "update", "patch", "delete":
		return r.Subresource != "status" && p.deploymentOf(r) != ""
	}
	return false
}

// deploymentOf is the Deployment whose ReplicaSet a request is about.
func (p *process) deploymentOf(r *history.Request) types.UID {
	if r.Object != nil {
		if ref := r.Object.ControllerRef(); ref != nil && ref.Kind == deploymentKind {
			return ref.UID
		}
	}
	if set := p.view.ownerNamed(r.Resource, r.Namespace, r.Name); set != nil && set.controller.Kind == deploymentKind {
		return set.controller.UID
	}
	return ""
}

// classifyRollout reads a call of the controller of Deployments.
func (p *process) classifyRollout(c *call, r *history.Request) {
	var uid types.UID
	if r.Resource == setResource {
		uid = p.deploymentOf(r)
	} else {
		uid = p.view.names[objectName{r.Resource, r.Namespace, r.Name}]
	}
	if uid == "" {
		return // a list, or a Deployment that it was never shown
	}
	c.rollout = p.rollout(uid)
	c.item = item{process: p, uid: uid}
	c.rollout.send(c.at)
	switch {
	case r.Resource == setResource:
		c.scaling = p.scalingOf(c, r)
	case r.Verb == "update" && r.Object != nil && r.Object.Version != 0:
		c.verb = callStatus
		c.rollout.knows(r.Object.Version)
	}
}

// scalingOf reads what a write of a ReplicaSet does to its replicas; nil if it
// says nothing about them.
func (p *process) scalingOf(c *call, r *history.Request) *scaling {
	if r.Verb == "create" && r.Object != nil {
		set, err := p.view.facts.decodeOwner(kindByResource(setResource), r.Object)
		if err != nil {
			return nil // the API server refuses what cannot be read
		}
		return c.rollout.scaling(r.Object.Name, set.template, 0, set.replicas)
	}
	known := p.view.ownerNamed(setResource, r.Namespace, r.Name)
	to, ok := replicasOf(r)
	if !ok || known == nil {
		return nil
	}
	from := known.Version
	if r.Object != nil && r.Object.Version != 0 {
		from = r.Object.Version
	}
	c.from = from
	return c.rollout.scaling(r.Name, known.template, from, to)
}

// replicasOf reads the replicas that an update or a patch asks for.
func replicasOf(r *history.Request) (int, bool) {
	var body struct{ Spec struct{ Replicas *int } }
	switch {
	case r.Object != nil:
		_ = unmarshalSome(r.Object.Body, &body) // as above: the API server refuses it
	case strings.Contains(r.PatchType, "json-patch"):
		var operations []struct {
			Path  string
			Value *int
		}
		_ = json.Unmarshal(r.Patch, &operations) // values of other types are left out
		for _, op := range operations {
			if op.Path == "/spec/replicas" && op.Value != nil {
				return *op.Value, true
			}
		}
	default:
		_ = unmarshalSome(r.Patch, &body)
	}
	if body.Spec.Replicas == nil {
		return 0, false
	}
	return *body.Spec.Replicas, true
}

// settleRollout takes in the answer to a call of the controller of Deployments.
func (p *process) settleRollout(c *call, r *history.Response, at time.Duration) {
	c.rollout.settle(at)
	c.rollout.fares(r, c.at, at)
	if c.verb == callStatus && r.OK() {
		c.rollout.report(at)
	}
	if c.scaling != nil && c.scaling.creates && r.Code == http.StatusConflict {
		c.rollout.taken[c.scaling.name] = at
	}
	if !r.OK() || r.Object == nil || r.Object.Resource != setResource || len(r.Object.Body) == 0 {
		return
	}
	if set, err := p.view.facts.owner(kindByResource(setResource), r.Object); err == nil && !set.terminating {
		c.rollout.wrote(set, c.from, at)
	}
}

// learnLive takes in a ReplicaSet that the process has read live, as it does to find out
// what became of one whose create was not answered.
func (p *process) learnLive(o *history.Object, at time.Duration) {
	if o.Resource != setResource || len(o.Body) == 0 {
		return
	}
	set, err := p.view.facts.owner(kindByResource(setResource), o)
	if err == nil && !set.terminating && p.view.deployments[set.controller.UID] != nil {
		p.rollout(set.controller.UID).learned(set, at)
	}
}

// classifyPublication reads a write of Endpoints.
func (p *process) classifyPublication(c *call, r *history.Request) {
	name := r.Name
	if name == "" && r.Object != nil {
		name = r.Object.Name
	}
	if name == "" {
		return
	}
	c.publication = p.publication(objectName{serviceResource, r.Namespace, name})
	c.publication.send(p, c.at)
	c.item = item{process: p, service: c.publication.name}
	if r.Verb == "create" {
		c.key += name
	}
}
