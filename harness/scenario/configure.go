package scenario

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/utils/ptr"
)

// Configure changes how an owner goes about its work: what is given, and nothing
// else, but that a strategy comes with both its bounds.
type Configure struct {
	Target
	MinReadySeconds *int `yaml:"minReadySeconds,omitempty"`

	// The rest is for Deployments. Strategy brings its own MaxSurge and
	// MaxUnavailable; nil is the API's default, 25%.
	Strategy       Strategy     `yaml:"strategy,omitempty"`
	MaxSurge       *IntOrString `yaml:"maxSurge,omitempty"`
	MaxUnavailable *IntOrString `yaml:"maxUnavailable,omitempty"`
	// RevisionHistoryLimit is a number of ReplicaSets.
	RevisionHistoryLimit    *int `yaml:"revisionHistoryLimit,omitempty"`
	ProgressDeadlineSeconds *int `yaml:"progressDeadlineSeconds,omitempty"`
}

func (c *Configure) String() string {
	return fmt.Sprintf("configure %s: %s", c.Target, strings.Join(given(reflect.ValueOf(*c)), ", "))
}

// given are the fields that say something, in the order of the type, as
// scenarios have them. The target's are not among them.
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
	v.check(len(given(reflect.ValueOf(*c))) > 0, path, "found nothing to change; expected %s", list(configurable(c.Kind), "or"))
	for i, field := range given(reflect.ValueOf(*c)) {
		name, _, _ := strings.Cut(field, " ")
		v.check(i == 0 && name == "minReadySeconds" || c.Kind == Deployment, join(path, name),
			"kind %s has no %s; expected %s", c.Kind, name, list(configurable(c.Kind), "or"))
	}
	if c.MinReadySeconds != nil {
		v.number(path+".minReadySeconds", *c.MinReadySeconds, 0, minReadySecondsMax)
	}
	if c.Strategy != "" {
		oneOf(v, path+".strategy", c.Strategy, RollingUpdate, Recreate)
	}
	v.shares(path, c.MaxSurge, c.MaxUnavailable, c.Strategy)
	v.limits(path, c.RevisionHistoryLimit, c.ProgressDeadlineSeconds, ptr.Deref(c.MinReadySeconds, 0))
}

// configurable are the fields of a Configure that mean something for a kind.
func configurable(kind Kind) []string {
	if kind != Deployment {
		return []string{"minReadySeconds"}
	}
	return []string{"minReadySeconds", "strategy", "maxSurge", "maxUnavailable", "revisionHistoryLimit", "progressDeadlineSeconds"}
}

// Publish changes how a Service is published: what is given, and nothing else.
type Publish struct {
	Target
	// Type is what the Service becomes. One that has been an ExternalName gets an
	// address, and needs Ports if it had none.
	Type ServiceType `yaml:"type,omitempty"`
	// ExternalName is required with type ExternalName, and goes with no other.
	ExternalName             string `yaml:"externalName,omitempty"`
	Ports                    []Port `yaml:"ports,omitempty"` // all of them, if any is given
	PublishNotReadyAddresses *bool  `yaml:"publishNotReadyAddresses,omitempty"`
}

// ServiceType is how a Service is reached.
type ServiceType string

// The types of Services.
const (
	ClusterIP    ServiceType = "ClusterIP"
	NodePort     ServiceType = "NodePort"
	ExternalName ServiceType = "ExternalName"
)

func (p *Publish) String() string {
	return fmt.Sprintf("publish %s: %s", p.Target, strings.Join(given(reflect.ValueOf(*p)), ", "))
}

func (p *Publish) validate(v *validator, path string) {
	v.check(len(given(reflect.ValueOf(*p))) > 0, path, "found nothing to change; expected type, externalName, ports or publishNotReadyAddresses")
	if p.Type != "" {
		oneOf(v, path+".type", p.Type, ClusterIP, NodePort, ExternalName)
	}
	v.check((p.Type == ExternalName) == (p.ExternalName != ""), path+".externalName",
		"found %.80q with type %q; expected a name with %s, and none else", p.ExternalName, p.Type, ExternalName)
	v.externalName(path, p.ExternalName)
	v.ports(path, p.Ports)
}
