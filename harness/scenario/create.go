package scenario

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Create creates one object, or several pods. The fields depend on the kind; see the table
// of kinds. An object of any other kind, such as a StatefulSet or a custom resource, is
// created from a manifest.
type Create struct {
	// Target names the object. If count is above 1, the pods have the names NAME-0, NAME-1,
	// and so on. A later step with the name NAME applies to all these pods.
	Target
	// APIVersion is the group and version of the kind, such as apps/v1. It is required for
	// kinds that gauntlet does not know, such as those of custom resources. All objects of
	// a kind have the same apiVersion.
	APIVersion string `yaml:"apiVersion,omitempty" format:"apiVersion"`
	// Manifest is the object without apiVersion, kind, metadata.name, metadata.namespace
	// and status. The harness counts spec.replicas as the number of the object's pods, and
	// 0 without it. In the built-in kinds of Kubernetes, a pod template without containers
	// gets the container and the tolerations of the workload's pods. A container without an
	// image gets the image of that container, and so does a container with the image
	// localhost/gauntlet/standin:run. Any other image must exist on the nodes.
	Manifest Fields `yaml:"manifest,omitempty" format:"manifest"`
	// Count is the number of pods.
	Count int `yaml:"count,omitempty" bounds:"1..100"`
	// Replicas is the number of replicas. It is required for kinds that have replicas.
	Replicas *int `yaml:"replicas,omitempty" bounds:"0..20000"`
	// Labels is the labels of the pod or of the pod template. The default is the labels of
	// the selector, or app: NAME without a selector. For other kinds, it is the labels of
	// the object.
	Labels map[string]string `yaml:"labels,omitempty" format:"labels"`
	// Selector is the selector. The default is the labels; a Service has no default.
	Selector map[string]string `yaml:"selector,omitempty" format:"labels"`
	// MinReadySeconds is the time, in seconds, after which a ready pod is available.
	MinReadySeconds int `yaml:"minReadySeconds,omitempty" bounds:"0..600"`
	// Controller is the controller of the pods.
	Controller Controller `yaml:"controller,omitempty"`

	// Version is the version of the pod template, a DNS label. It becomes an annotation of
	// the template. By default the template has no version.
	Version string `yaml:"version,omitempty" format:"name"`
	// Strategy is the strategy of a Deployment, by default RollingUpdate.
	Strategy Strategy `yaml:"strategy,omitempty"`
	// MaxSurge is a number of pods, or a percentage of the replicas such as 25%. The
	// default of the API is 25%.
	MaxSurge *IntOrString `yaml:"maxSurge,omitempty" format:"share"`
	// MaxUnavailable is a number of pods, or a percentage of the replicas such as 25%.
	// The default of the API is 25%.
	MaxUnavailable *IntOrString `yaml:"maxUnavailable,omitempty" format:"share"`
	// RevisionHistoryLimit is the number of old ReplicaSets that the controller
	// retains. The default of the API is 10.
	RevisionHistoryLimit *int `yaml:"revisionHistoryLimit,omitempty" bounds:"0..1000000"`
	// ProgressDeadlineSeconds is the time, in seconds, after which a rollout without
	// progress fails. It must exceed minReadySeconds. The default of the API is 600.
	ProgressDeadlineSeconds *int `yaml:"progressDeadlineSeconds,omitempty" bounds:"1..3600"`
	// Paused creates the Deployment paused.
	Paused bool `yaml:"paused,omitempty"`

	// Ports is the list of ports of a Service. The default is one port, 80, with the target
	// port http. Only a headless Service may have an empty list: [].
	Ports []Port `yaml:"ports,omitempty" bounds:"0..20"`
	// Headless creates the Service without a cluster IP address.
	Headless bool `yaml:"headless,omitempty"`
	// PublishNotReadyAddresses is the Service field with the same name.
	PublishNotReadyAddresses bool `yaml:"publishNotReadyAddresses,omitempty"`
	// ExternalName is a DNS name. With it the Service has the type ExternalName.
	ExternalName string `yaml:"externalName,omitempty" format:"domain"`

	// Leader adds the annotation of a leader election to the Endpoints.
	Leader bool `yaml:"leader,omitempty"`
}

// Controller is the controller of a pod that the workload creates.
type Controller string

// The controllers of a pod.
const (
	NoController      Controller = "none"    // The pod has no controller.
	ForeignController Controller = "foreign" // The controller is an object that the subject does not manage.
)

// Strategy is the strategy by which a Deployment replaces its pods.
type Strategy string

// The strategies.
const (
	RollingUpdate Strategy = "RollingUpdate" // The Deployment replaces its pods step by step.
	Recreate      Strategy = "Recreate"      // The Deployment deletes all old pods before it creates new ones.
)

// Port is a port of a Service.
type Port struct {
	// Name is the name of the port. It is required if the Service has several ports.
	Name string `yaml:"name,omitempty" format:"name"`
	// Port is the port number of the Service.
	Port int `yaml:"port" bounds:"1..65535" required:"true"`
	// TargetPort is the number or the name of the container port, by default the port
	// number. The pods of a workload have the TCP ports http (8080) and metrics (9090).
	TargetPort *IntOrString `yaml:"targetPort,omitempty" format:"port"`
	// Protocol is the protocol of the port.
	Protocol Protocol `yaml:"protocol,omitempty"`
}

// Protocol is the protocol of a port.
type Protocol string

// The protocols.
const (
	TCP  Protocol = "TCP"
	UDP  Protocol = "UDP"
	SCTP Protocol = "SCTP"
)

// Names returns the names of the objects that the operation creates.
func (c *Create) Names() []string {
	if c.Count == 1 {
		return []string{c.Name}
	}
	names := make([]string, c.Count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", c.Name, i)
	}
	return names
}

func (c *Create) String() string {
	var b strings.Builder
	if c.Count > 1 {
		fmt.Fprintf(&b, "create %d %ss %s", c.Count, c.Kind, c.Name)
	} else {
		fmt.Fprintf(&b, "create %s", c.Target)
	}
	if c.Replicas != nil {
		fmt.Fprintf(&b, " with %d replicas", *c.Replicas)
	}
	if c.Controller == ForeignController {
		b.WriteString(" under a foreign controller")
	}
	return b.String()
}

func (c *Create) setDefaults() { *c = Create{Count: 1, Controller: NoController} }

func (p *Port) setDefaults() { *p = Port{Protocol: TCP} }

func (c *Create) complete() {
	if row, ok := kube.Named(string(c.Kind)); ok && c.Kind.IsGeneric() && c.APIVersion == "" {
		c.APIVersion = row.APIVersion()
	}
	if c.Kind.makesPods() && len(c.Labels) == 0 {
		c.Labels = c.Selector
	}
	if c.Kind.makesPods() && len(c.Labels) == 0 {
		c.Labels = map[string]string{"app": c.Name}
	}
	if c.Kind.owner() && len(c.Selector) == 0 {
		c.Selector = c.Labels
	}
	if c.Kind == Deployment && c.Strategy == "" {
		c.Strategy = RollingUpdate
	}
	if c.Kind == Service && c.Ports == nil && c.ExternalName == "" {
		c.Ports = []Port{{Name: "http", Port: 80, TargetPort: &IntOrString{text: "http"}, Protocol: TCP}}
	}
}

func (c *Create) validate(v *validator, path string) {
	v.bounded(path, c)
	if v.err != nil {
		return // the method Names needs a valid count
	}
	if !c.Kind.IsGeneric() {
		for _, name := range c.Names() {
			v.name(path+".name", name)
		}
		v.check(c.APIVersion == "", path+".apiVersion", "found %q; expected none, because kind %s has an apiVersion of its own", c.APIVersion, c.Kind)
	}
	v.createFields(path, c)
	v.labels(path+".labels", c.Labels)
	v.labels(path+".selector", c.Selector)
	oneOf(v, path+".controller", c.Controller, NoController, ForeignController)
	if c.Kind.owner() {
		v.replicas(path+".replicas", c.Replicas)
		for _, key := range sortedKeys(c.Selector) {
			v.check(c.Labels[key] == c.Selector[key], path+".selector",
				"found %s: %s, which the labels do not have; expected a selector that matches the labels", key, c.Selector[key])
		}
	}
	switch {
	case c.Kind == Deployment:
		v.deployment(path, c)
	case c.Kind == Service:
		v.service(path, c)
	case c.Kind.IsGeneric():
		v.genericCreate(path, c)
	}
}

// createFields requires that the create has only fields that its kind has.
func (v *validator) createFields(path string, c *Create) {
	var plain Create
	plain.setDefaults()
	found, none, fields := reflect.ValueOf(*c), reflect.ValueOf(plain), c.Kind.row().fields
	for i := range found.NumField() {
		name := fieldTag(found.Type().Field(i))
		if name == "" || slices.Contains(fields, name) || reflect.DeepEqual(found.Field(i).Interface(), none.Field(i).Interface()) {
			continue
		}
		v.check(false, join(path, name), "kind %s has no %s; expected kind, name, %s", c.Kind, name, list(fields, "or"))
	}
}

func (v *validator) deployment(path string, c *Create) {
	oneOf(v, path+".strategy", c.Strategy, RollingUpdate, Recreate)
	if c.Version != "" {
		v.version(path+".version", c.Version)
	}
	v.shares(path, c.MaxSurge, c.MaxUnavailable, c.Strategy)
	v.limits(path, c.ProgressDeadlineSeconds, c.MinReadySeconds)
}

// shares requires that maxSurge or maxUnavailable is above 0.
func (v *validator) shares(path string, surge, unavailable *IntOrString, strategy Strategy) {
	v.share(path+".maxSurge", surge, strategy)
	v.share(path+".maxUnavailable", unavailable, strategy)
	v.check(!surge.isNone() || !unavailable.isNone(), path+".maxUnavailable",
		"found %s beside maxSurge %s; expected one of them above 0", unavailable, surge)
}

// limits requires that the progress deadline is longer than minReadySeconds.
func (v *validator) limits(path string, deadlineSeconds *int, minReadySeconds int) {
	if deadlineSeconds != nil {
		v.number(path+".progressDeadlineSeconds", *deadlineSeconds, minReadySeconds+1, progressDeadlineSecondsMax)
	}
}

// share requires a number of pods or a percentage, and the strategy RollingUpdate.
func (v *validator) share(path string, share *IntOrString, strategy Strategy) {
	if share == nil {
		return
	}
	v.check(strategy == RollingUpdate, path, "found it beside strategy %s; expected strategy %s", cmp.Or(strategy, "none"), RollingUpdate)
	v.check(share.isShare(), path, "found %s; expected 0 to %d, or 0%% to 100%%", share, replicasMax)
}

func (v *validator) service(path string, c *Create) {
	if c.ExternalName != "" {
		v.check(!c.Headless, path+".headless", "found headless beside externalName; expected one of them")
		v.externalName(path, c.ExternalName)
	}
	v.check(len(c.Ports) > 0 || c.Headless || c.ExternalName != "", path+".ports", "found none; expected some, or headless: true")
	v.ports(path, c.Ports)
}

func (v *validator) externalName(path, name string) {
	v.check(name == "" || len(validation.IsDNS1123Subdomain(name)) == 0, path+".externalName",
		"found %.80q; expected a domain such as example.com", name)
}

func (v *validator) ports(path string, found []Port) {
	v.check(len(found) <= portsMax, path+".ports", "found %d; expected at most %d", len(found), portsMax)
	names, ports := map[string]bool{}, map[Port]bool{}
	for i, port := range found {
		at := fmt.Sprintf("%s.ports[%d]", path, i)
		if port.Name != "" || len(found) > 1 {
			v.name(at+".name", port.Name)
		}
		v.check(!names[port.Name], at+".name", "found %q twice; expected it once", port.Name)
		names[port.Name] = true
		v.bounded(at, &found[i])
		same := Port{Port: port.Port, Protocol: port.Protocol}
		v.check(!ports[same], at+".port", "found %d for %s twice; expected it once", port.Port, port.Protocol)
		ports[same] = true
		v.check(port.TargetPort == nil || port.TargetPort.isPort(), at+".targetPort",
			"found %s; expected 1 to %d, or the name of a container port", port.TargetPort, portMax)
		oneOf(v, at+".protocol", port.Protocol, TCP, UDP, SCTP)
	}
}
