package scenario

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Create makes one object, or Count pods. Which fields mean something depends on
// the kind; see the table of kinds.
type Create struct {
	// Target's name is the object's, or, of several pods, what their names begin
	// with: they are name-0, name-1, ... Other steps reach them all by it.
	Target
	// Count is the number of pods; 1 for every other kind.
	Count int `yaml:"count,omitempty"`
	// Replicas is required where the kind has replicas, and nil elsewhere.
	Replicas *int `yaml:"replicas,omitempty"`
	// Labels are those of the pod, or of the pod template, by default the selector's,
	// else app: NAME. Of other kinds they are the object's own.
	Labels map[string]string `yaml:"labels,omitempty"`
	// Selector is by default the labels; a Service's is by default none.
	Selector        map[string]string `yaml:"selector,omitempty"`
	MinReadySeconds int               `yaml:"minReadySeconds,omitempty"`
	// Controller is who controls the pods; NoController for every other kind.
	Controller Controller `yaml:"controller,omitempty"`

	// Version tells pod templates apart: it becomes an annotation of the template;
	// "" is none.
	Version  string   `yaml:"version,omitempty"`
	Strategy Strategy `yaml:"strategy,omitempty"`
	// MaxSurge and MaxUnavailable are numbers of pods, or percentages of the
	// replicas such as 25%; nil leaves them to the API, which has 25% for both.
	MaxSurge       *IntOrString `yaml:"maxSurge,omitempty"`
	MaxUnavailable *IntOrString `yaml:"maxUnavailable,omitempty"`
	// RevisionHistoryLimit and ProgressDeadlineSeconds are left to the API when nil:
	// 10 and 600.
	RevisionHistoryLimit    *int `yaml:"revisionHistoryLimit,omitempty"`
	ProgressDeadlineSeconds *int `yaml:"progressDeadlineSeconds,omitempty"`
	Paused                  bool `yaml:"paused,omitempty"`

	// Ports are a Service's; by default one, from 80 to the pods' port http. A
	// headless Service may have none: [].
	Ports                    []Port `yaml:"ports,omitempty"`
	Headless                 bool   `yaml:"headless,omitempty"`
	PublishNotReadyAddresses bool   `yaml:"publishNotReadyAddresses,omitempty"`
	// ExternalName, if set, makes the Service one of type ExternalName.
	ExternalName string `yaml:"externalName,omitempty"`

	// Leader makes the Endpoints a record of a leader election.
	Leader bool `yaml:"leader,omitempty"`
}

// Controller is who controls a pod that the workload makes.
type Controller string

// The controllers of a pod.
const (
	NoController      Controller = "none"    // an orphan
	ForeignController Controller = "foreign" // an object that is no business of the subject's
)

// Strategy is how a Deployment replaces its pods.
type Strategy string

// The strategies.
const (
	RollingUpdate Strategy = "RollingUpdate"
	Recreate      Strategy = "Recreate"
)

// Port is a port of a Service.
type Port struct {
	Name string `yaml:"name,omitempty"` // required where there are several
	Port int    `yaml:"port"`
	// TargetPort is the number of the pods' port, or its name; nil is Port. Every
	// pod of a workload has the TCP ports http, 8080, and metrics, 9090.
	TargetPort *IntOrString `yaml:"targetPort,omitempty"`
	Protocol   Protocol     `yaml:"protocol,omitempty"`
}

// Protocol is what a port speaks.
type Protocol string

// The protocols.
const (
	TCP  Protocol = "TCP"
	UDP  Protocol = "UDP"
	SCTP Protocol = "SCTP"
)

// Names are the names of the objects that the create makes.
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
	v.number(path+".count", c.Count, 1, countMax)
	for _, name := range c.Names() {
		v.name(path+".name", name)
	}
	v.createFields(path, c)
	v.labels(path+".labels", c.Labels)
	v.labels(path+".selector", c.Selector)
	oneOf(v, path+".controller", c.Controller, NoController, ForeignController)
	if c.Kind.owner() {
		v.replicas(path+".replicas", c.Replicas)
		v.number(path+".minReadySeconds", c.MinReadySeconds, 0, minReadySecondsMax)
		for _, key := range sortedKeys(c.Selector) {
			v.check(c.Labels[key] == c.Selector[key], path+".selector",
				"found %s: %s, which the labels do not have; expected a selector that matches them", key, c.Selector[key])
		}
	}
	switch c.Kind {
	case Deployment:
		v.deployment(path, c)
	case Service:
		v.service(path, c)
	}
}

// createFields demands that the create says nothing that its kind does not have.
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
	v.limits(path, c.RevisionHistoryLimit, c.ProgressDeadlineSeconds, c.MinReadySeconds)
}

// shares demands of the bounds of a rolling update that one of them is above 0.
func (v *validator) shares(path string, surge, unavailable *IntOrString, strategy Strategy) {
	v.share(path+".maxSurge", surge, strategy)
	v.share(path+".maxUnavailable", unavailable, strategy)
	v.check(!surge.isNone() || !unavailable.isNone(), path+".maxUnavailable",
		"found %s beside maxSurge %s; expected one of them above 0", unavailable, surge)
}

// limits demands a deadline that is later than a pod is available.
func (v *validator) limits(path string, history, deadlineSeconds *int, minReadySeconds int) {
	if history != nil {
		v.number(path+".revisionHistoryLimit", *history, 0, revisionMax)
	}
	if deadlineSeconds != nil {
		v.number(path+".progressDeadlineSeconds", *deadlineSeconds, minReadySeconds+1, progressDeadlineSecondsMax)
	}
}

// share demands a part of a rolling Deployment's replicas, if there is one.
func (v *validator) share(path string, share *IntOrString, strategy Strategy) {
	if share == nil {
		return
	}
	v.check(strategy == RollingUpdate, path, "goes with strategy %s, not %s", RollingUpdate, cmp.Or(strategy, "none"))
	v.check(share.isShare(), path, "found %s; expected 0 to %d, or 0%% to 100%%", share, replicasMax)
}

func (v *validator) service(path string, c *Create) {
	if c.ExternalName != "" {
		v.check(!c.Headless, path+".headless", "a Service with an externalName is not headless; leave one out")
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
		v.number(at+".port", port.Port, 1, portMax)
		same := Port{Port: port.Port, Protocol: port.Protocol}
		v.check(!ports[same], at+".port", "found %d for %s twice; expected it once", port.Port, port.Protocol)
		ports[same] = true
		v.check(port.TargetPort == nil || port.TargetPort.isPort(), at+".targetPort",
			"found %s; expected 1 to %d, or the name of a pod's port", port.TargetPort, portMax)
		oneOf(v, at+".protocol", port.Protocol, TCP, UDP, SCTP)
	}
}
