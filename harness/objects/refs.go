package objects

import "github.com/kube-gauntlet/gauntlet/harness/history"

// ObjectRef returns the reference to this version of the pod.
func (p *Pod) ObjectRef() *history.Ref { return &p.Ref }

// ObjectRef returns the reference to this version of the owner.
func (o *Owner) ObjectRef() *history.Ref { return &o.Ref }

// ObjectRef returns the reference to this version of the Deployment.
func (d *Deployment) ObjectRef() *history.Ref { return &d.Ref }

// ObjectRef returns the reference to this version of the Service.
func (s *Service) ObjectRef() *history.Ref { return &s.Ref }

// ObjectRef returns the reference to this version of the Endpoints.
func (e *Endpoints) ObjectRef() *history.Ref { return &e.Ref }

// ObjectRef returns the reference to this version of the object.
func (g *Generic) ObjectRef() *history.Ref { return &g.Ref }
