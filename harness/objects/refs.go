package objects

import "github.com/kube-gauntlet/gauntlet/harness/history"

// ObjectRef returns the pod's resource, namespace, name, UID and resourceVersion.
func (p *Pod) ObjectRef() *history.Ref { return &p.Ref }

// ObjectRef returns the owner's resource, namespace, name, UID and resourceVersion.
func (o *Owner) ObjectRef() *history.Ref { return &o.Ref }

// ObjectRef returns the Deployment's resource, namespace, name, UID and resourceVersion.
func (d *Deployment) ObjectRef() *history.Ref { return &d.Ref }

// ObjectRef returns the Service's resource, namespace, name, UID and resourceVersion.
func (s *Service) ObjectRef() *history.Ref { return &s.Ref }

// ObjectRef returns the resource, namespace, name, UID and resourceVersion of the Endpoints.
func (e *Endpoints) ObjectRef() *history.Ref { return &e.Ref }

// ObjectRef returns the object's resource, namespace, name, UID and resourceVersion.
func (g *Generic) ObjectRef() *history.Ref { return &g.Ref }
