package objects

import "github.com/kube-gauntlet/gauntlet/harness/history"

// ObjectRef returns a reference to this version of the pod: resource, namespace, name, UID and
// resourceVersion.
func (p *Pod) ObjectRef() *history.Ref { return &p.Ref }

// ObjectRef returns a reference to this version of the owner: resource, namespace, name, UID and
// resourceVersion.
func (o *Owner) ObjectRef() *history.Ref { return &o.Ref }

// ObjectRef returns a reference to this version of the Deployment: resource, namespace, name, UID
// and resourceVersion.
func (d *Deployment) ObjectRef() *history.Ref { return &d.Ref }

// ObjectRef returns a reference to this version of the Service: resource, namespace, name, UID
// and resourceVersion.
func (s *Service) ObjectRef() *history.Ref { return &s.Ref }

// ObjectRef returns a reference to this version of the Endpoints: resource, namespace, name, UID
// and resourceVersion.
func (e *Endpoints) ObjectRef() *history.Ref { return &e.Ref }

// ObjectRef returns a reference to this version of the object: resource, namespace, name, UID and
// resourceVersion.
func (g *Generic) ObjectRef() *history.Ref { return &g.Ref }
