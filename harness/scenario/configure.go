package scenario

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Configure changes fields of the spec of a ReplicaSet, a ReplicationController or a Deployment.
// Fields that the step omits do not change. The step must set at least one field.
type Configure struct {
	Target
	// MinReadySeconds is the number of seconds for which a pod must be ready before it is
	// available.
	MinReadySeconds *int `yaml:"minReadySeconds,omitempty" bounds:"0..600"`

	// Strategy is the strategy of a Deployment. With RollingUpdate, the step also sets maxSurge
	// and maxUnavailable. If the step omits maxSurge or maxUnavailable, the Deployment gets the
	// default of the API.
	Strategy Strategy `yaml:"strategy,omitempty"`
	// MaxSurge limits how many pods a rollout may have above spec.replicas. It is a number of pods,
	// or a percentage of the replicas such as 25%. The same step must set strategy:
	// RollingUpdate. The default of the API is 25%.
	MaxSurge *IntOrString `yaml:"maxSurge,omitempty" format:"share"`
	// MaxUnavailable limits the pods that may be unavailable during a rollout. It is a number of
	// pods, or a percentage of the replicas such as 25%. The same step must set strategy:
	// RollingUpdate. The default of the API is 25%.
	MaxUnavailable *IntOrString `yaml:"maxUnavailable,omitempty" format:"share"`
	// RevisionHistoryLimit is the number of old ReplicaSets that the Deployment controller does
	// not delete.
	RevisionHistoryLimit *int `yaml:"revisionHistoryLimit,omitempty" bounds:"0..1000000"`
	// ProgressDeadlineSeconds is the number of seconds without progress after which a rollout
	// has failed.
	ProgressDeadlineSeconds *int `yaml:"progressDeadlineSeconds,omitempty" bounds:"1..3600"`
}

func (c *Configure) String() string {
	return fmt.Sprintf("configure %s: %s", c.Target, strings.Join(given(reflect.ValueOf(*c)), ", "))
}

// given returns the fields of an operation that the step sets, for the text of the step. Each
// item is the YAML name and the value, such as "minReadySeconds 5". Zero values and the embedded
// target are not included.
func given(from reflect.Value) []string {
	var words []string
	for i := range from.NumField() {
		name, found := fieldTag(from.Type().Field(i)), from.Field(i)
		if name != "" && !found.IsZero() {
			words = append(words, name+" "+inline(encode(found)))
		}
	}
	return words
}

func (c *Configure) validate(v *validator, path string) {
	v.check(len(given(reflect.ValueOf(*c))) > 0, path, "found nothing to change; expected %s", nearest.List(configurable(c.Kind), "or"))
	for i, field := range given(reflect.ValueOf(*c)) {
		name, _, _ := strings.Cut(field, " ")
		v.check(i == 0 && name == "minReadySeconds" || c.Kind == Deployment || v.invalid(path+".kind"), join(path, name),
			"a configure of kind %s has no field %s; expected only %s", c.Kind, name, nearest.List(configurable(c.Kind), "or"))
	}
	v.bounded(path, c)
	if c.Strategy != "" {
		oneOf(v, path+".strategy", c.Strategy, RollingUpdate, Recreate)
	}
	v.shares(path, c.MaxSurge, c.MaxUnavailable, c.Strategy)
	v.limits(path, c.ProgressDeadlineSeconds, ptr.Deref(c.MinReadySeconds, 0))
}

// configurable returns the YAML names of the fields that a configure operation may change in
// objects of a kind.
func configurable(kind Kind) []string {
	if kind != Deployment {
		return []string{"minReadySeconds"}
	}
	return []string{"minReadySeconds", "strategy", "maxSurge", "maxUnavailable", "revisionHistoryLimit", "progressDeadlineSeconds"}
}

// Publish changes the type, the ports or the addresses of a Service. Fields that the step omits
// do not change. The step must set at least one field.
type Publish struct {
	Target
	// Type is the new type of the Service. If the Service had the type ExternalName, the API
	// server assigns a cluster IP address. If that Service has no ports, the step must also set
	// ports.
	Type ServiceType `yaml:"type,omitempty"`
	// ExternalName is the DNS name to which the Service refers. It is required for the type
	// ExternalName, and not allowed for other types.
	ExternalName string `yaml:"externalName,omitempty" format:"domain"`
	// Ports is the new list of ports. It replaces the whole list of the Service.
	Ports []Port `yaml:"ports,omitempty" bounds:"0..20"`
	// PublishNotReadyAddresses is the new value of spec.publishNotReadyAddresses. If it is true,
	// addresses of pods that are not ready count as ready in the Endpoints.
	PublishNotReadyAddresses *bool `yaml:"publishNotReadyAddresses,omitempty"`
}

// ServiceType is the type that a publish operation gives to a Service, such as ClusterIP.
type ServiceType string

// These are the types of Services that a scenario may use.
const (
	ClusterIP    ServiceType = "ClusterIP"    // The Service has a cluster IP address.
	NodePort     ServiceType = "NodePort"     // The Service has a port on every node.
	ExternalName ServiceType = "ExternalName" // The Service is an alias of a DNS name.
)

func (p *Publish) String() string {
	return fmt.Sprintf("publish %s: %s", p.Target, strings.Join(given(reflect.ValueOf(*p)), ", "))
}

func (p *Publish) validate(v *validator, path string) {
	v.check(len(given(reflect.ValueOf(*p))) > 0, path, "found nothing to change; expected type, externalName, ports or publishNotReadyAddresses")
	if p.Type != "" {
		oneOf(v, path+".type", p.Type, ClusterIP, NodePort, ExternalName)
	}
	v.check(p.Type != ExternalName || p.ExternalName != "", path+".externalName",
		"found nothing with type %s; expected a domain such as example.com", ExternalName)
	v.check(p.Type == ExternalName || p.ExternalName == "" || v.invalid(path+".type"), path+".externalName",
		"found externalName %.80q with type %q; expected an externalName only with type %s", p.ExternalName, p.Type, ExternalName)
	v.check(p.Ports == nil || len(p.Ports) > 0 || p.Type == ExternalName || v.invalid(path+".type"), path+".ports", "found an empty list; expected at least one port, or no field ports")
	v.externalName(path, p.ExternalName)
	v.ports(path, p.Ports)
}
