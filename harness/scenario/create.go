package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Create creates one object, or several pods. The kind decides which fields the step may have;
// see the table of kinds. A kind that is not in that table, such as StatefulSet or the kind of a
// custom resource, needs a manifest.
type Create struct {
	// Target names the object. If count is above 1, the pods have the names NAME-0, NAME-1,
	// and so on. A later step with the name NAME acts on all these pods.
	Target
	// APIVersion is the group and version of the kind, such as apps/v1. It is required for
	// kinds that gauntlet does not know, such as the kinds of custom resources. All create
	// steps of one kind must have the same apiVersion.
	APIVersion string `yaml:"apiVersion,omitempty" format:"apiVersion"`
	// Manifest is the object without apiVersion, kind, metadata.name, metadata.namespace and
	// status. gauntlet assumes that the object needs spec.replicas pods, or none if the manifest
	// has no such field. For built-in kinds of Kubernetes, gauntlet completes pod templates. A
	// template without containers gets the container and the tolerations of the workload's pods. A
	// container without an image gets the image of the workload's pods. In every kind, the image
	// localhost/gauntlet/standin:run stands for that image. Any other image must exist on the
	// nodes.
	Manifest Fields `yaml:"manifest,omitempty" format:"manifest"`
	// Count is the number of pods to create.
	Count int `yaml:"count,omitempty" bounds:"1..100"`
	// Replicas is the desired number of pods. It is required for kinds that have replicas.
	Replicas *int `yaml:"replicas,omitempty" bounds:"0..20000"`
	// Labels is the labels of the pod or of the pod template. The default is the labels of the
	// selector, or app: NAME without a selector. For Services and Endpoints, the field has the
	// labels of the object itself.
	Labels map[string]string `yaml:"labels,omitempty" format:"labels"`
	// Selector is the labels by which the object selects pods. The default is the value of the
	// field labels. A Service has no default: without a selector, it selects no pods.
	Selector map[string]string `yaml:"selector,omitempty" format:"labels"`
	// MatchExpressions is the list of further requirements of the selector.
	MatchExpressions []Expression `yaml:"matchExpressions,omitempty"`
	// MinReadySeconds is the number of seconds for which a pod must be ready before it is
	// available.
	MinReadySeconds int `yaml:"minReadySeconds,omitempty" bounds:"0..600"`
	// Controller says whether the created pods have an owner reference to a controller.
	Controller Controller `yaml:"controller,omitempty"`

	// Version is the version of the pod template, a DNS label. It becomes an annotation of the
	// template, so that templates of different versions differ. By default the template has no
	// version.
	Version string `yaml:"version,omitempty" format:"name"`
	// Strategy is the strategy of a Deployment, by default RollingUpdate.
	Strategy Strategy `yaml:"strategy,omitempty"`
	// MaxSurge limits how many pods a rollout may have above spec.replicas. It is a number of pods,
	// or a percentage of the replicas such as 25%. The default of the API is 25%.
	MaxSurge *IntOrString `yaml:"maxSurge,omitempty" format:"share"`
	// MaxUnavailable limits the pods that may be unavailable during a rollout. It is a number of
	// pods, or a percentage of the replicas such as 25%. The default of the API is 25%.
	MaxUnavailable *IntOrString `yaml:"maxUnavailable,omitempty" format:"share"`
	// RevisionHistoryLimit is the number of old ReplicaSets that the Deployment controller does
	// not delete. The default of the API is 10.
	RevisionHistoryLimit *int `yaml:"revisionHistoryLimit,omitempty" bounds:"0..1000000"`
	// ProgressDeadlineSeconds is the number of seconds without progress after which a rollout
	// has failed. It must exceed minReadySeconds. The default of the API is 600.
	ProgressDeadlineSeconds *int `yaml:"progressDeadlineSeconds,omitempty" bounds:"1..3600"`
	// Paused creates the Deployment with spec.paused set to true.
	Paused bool `yaml:"paused,omitempty"`

	// Ports is the list of ports of a Service. The default is one port, 80, with the target
	// port http. A Service with externalName has no ports by default. Only a headless Service,
	// or one with externalName, may have an empty list: [].
	Ports []Port `yaml:"ports,omitempty" bounds:"0..20"`
	// Headless creates the Service without a cluster IP address.
	Headless bool `yaml:"headless,omitempty"`
	// PublishNotReadyAddresses is the value of spec.publishNotReadyAddresses. If it is true,
	// addresses of pods that are not ready count as ready in the Endpoints.
	PublishNotReadyAddresses bool `yaml:"publishNotReadyAddresses,omitempty"`
	// ExternalName is the DNS name to which the Service refers. With it, the Service has the
	// type ExternalName.
	ExternalName string `yaml:"externalName,omitempty" format:"domain"`

	// Leader adds the annotation control-plane.alpha.kubernetes.io/leader to the Endpoints
	// object. Leader election sets this annotation on an Endpoints object that it uses as a
	// lock.
	Leader bool `yaml:"leader,omitempty"`
}

// Controller says which controller the owner reference of a created pod names. With "foreign", the
// pod belongs to an object that the controllers under test must not touch.
type Controller string

// These are the values of [Controller], which says whether a created pod has an owner.
const (
	NoController      Controller = "none"    // The pod has no owner reference.
	ForeignController Controller = "foreign" // The controller is a ConfigMap, which the controllers under test do not reconcile.
)

// Strategy is the strategy by which a Deployment replaces its pods.
type Strategy string

// These are the values of [Strategy], the update strategy of a Deployment.
const (
	RollingUpdate Strategy = "RollingUpdate" // The Deployment replaces its pods within maxSurge and maxUnavailable.
	Recreate      Strategy = "Recreate"      // The Deployment deletes all old pods before it creates new ones.
)

// Port is a port of a Service.
type Port struct {
	// Name is the name of the port. It is required if the Service has several ports.
	Name string `yaml:"name,omitempty" format:"name"`
	// Port is the port number of the Service.
	Port int `yaml:"port" bounds:"1..65535" required:"true"`
	// TargetPort is the number or the name of the container port. The default is the value of
	// port. The pods of a workload have the TCP ports http (8080) and metrics (9090).
	TargetPort *IntOrString `yaml:"targetPort,omitempty" format:"port"`
	// Protocol is the network protocol of the port.
	Protocol Protocol `yaml:"protocol,omitempty"`
}

// Protocol is the network protocol of a Service port.
type Protocol string

// These are the network protocols that a Service port may have.
const (
	TCP  Protocol = "TCP"
	UDP  Protocol = "UDP"
	SCTP Protocol = "SCTP"
)

// Names returns the names of the objects that the operation creates: one name, or the names of
// several pods. With count 3 and name web, the names are web-0, web-1 and web-2.
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
	if v.invalid(path) {
		return // Names allocates a slice of length count, so count must be valid first
	}
	if !c.Kind.IsGeneric() {
		for _, name := range c.Names() {
			v.name(path+".name", name)
		}
		v.check(c.APIVersion == "", path+".apiVersion", "found apiVersion %q for kind %s; remove the field, because gauntlet knows the apiVersion of this kind", c.APIVersion, c.Kind)
	}
	if c.Kind.IsGeneric() {
		if v.apiVersion(path+".apiVersion", c); v.invalid(path+".apiVersion") || v.invalid(path+".kind") {
			return // further errors may not apply: the apiVersion may be missing because the kind is misspelled
		}
	}
	v.createFields(path, c)
	// If the file has only one of the two, complete has copied it to the other.
	if !maps.Equal(c.Selector, c.Labels) || v.scenario.source.has(path+".selector") {
		v.labels(path+".selector", c.Selector)
	}
	if !maps.Equal(c.Selector, c.Labels) || v.scenario.source.has(path+".labels") {
		v.labels(path+".labels", c.Labels)
	}
	oneOf(v, path+".controller", c.Controller, NoController, ForeignController)
	if c.Kind.owner() {
		if !v.invalid(path+".count") && !v.invalid(path+".manifest") { // these fields probably have the number of replicas
			v.replicas(path+".replicas", c.Replicas)
		}
		for _, key := range sortedKeys(c.Selector) {
			v.check(c.Labels[key] == c.Selector[key], path+".selector",
				"found %s: %s, which the labels do not have; expected a selector that matches the labels", key, c.Selector[key])
		}
	}
	v.expressions(path, c)
	switch {
	case c.Kind == Deployment:
		v.deployment(path, c)
	case c.Kind == Service:
		v.service(path, c)
	case c.Kind.IsGeneric():
		v.genericCreate(path, c)
	}
}

// createFields reports an error for each field of a create operation that the kind does not
// support.
func (v *validator) createFields(path string, c *Create) {
	var plain Create
	plain.setDefaults()
	found, none, fields := reflect.ValueOf(*c), reflect.ValueOf(plain), c.Kind.row().fields
	for i := range found.NumField() {
		name := fieldTag(found.Type().Field(i))
		if name == "" || slices.Contains(fields, name) || reflect.DeepEqual(found.Field(i).Interface(), none.Field(i).Interface()) {
			continue
		}
		v.check(false, join(path, name), "a create of kind %s has no field %s; expected only the fields kind, name, %s%s", c.Kind, name, nearest.List(fields, "or"), cmp.Or(inManifest(c.Kind), c.meantField(name)))
	}
}

// meantField returns the suggestion of the field that a user means by a field that the kind does not have.
func (c *Create) meantField(name string) string {
	switch {
	case name == "count" && c.Kind.owner() && c.Replicas == nil:
		return asAdvice("replicas")
	case name == "replicas" && c.Kind == Pod:
		return asAdvice("count")
	}
	return ""
}

// inManifest returns an advice about a field of a kind that needs a manifest, or "" for another kind.
func inManifest(kind Kind) string {
	if kind.IsGeneric() {
		return "; write it below manifest, such as manifest: {spec: {replicas: 3}}"
	}
	return ""
}

// deployment records an error for each invalid value in the fields for a Deployment. These are
// the fields that only a create operation of this kind has, such as maxSurge.
func (v *validator) deployment(path string, c *Create) {
	oneOf(v, path+".strategy", c.Strategy, RollingUpdate, Recreate)
	if c.Version != "" {
		v.version(path+".version", c.Version)
	}
	v.shares(path, c.MaxSurge, c.MaxUnavailable, c.Strategy)
	v.limits(path, c.ProgressDeadlineSeconds, c.MinReadySeconds)
}

// shares records an error if maxSurge and maxUnavailable are both 0, or if one is invalid. The
// API server rejects a Deployment in which both are 0. A nil pointer means the default of the
// API, which is above 0. shares also records an error if the strategy is not RollingUpdate.
func (v *validator) shares(path string, surge, unavailable *IntOrString, strategy Strategy) {
	v.share(path+".maxSurge", surge)
	v.share(path+".maxUnavailable", unavailable)
	if strategy == "" || strategy == Recreate { // the error about any other strategy suffices
		at, share := path+".maxSurge", surge
		if share == nil {
			at, share = path+".maxUnavailable", unavailable
		}
		v.check(share == nil || v.invalid(path+".strategy") || v.invalid(path+".kind"), at,
			"found %s with strategy %s; expected strategy %s for this field", share, cmp.Or(strategy, "none"), RollingUpdate)
	}
	v.check(!surge.isNone() || !unavailable.isNone(), path+".maxUnavailable",
		"found %s beside maxSurge %s; expected at least one of the two fields above 0", unavailable, surge)
}

// limits records an error if the progress deadline is not longer than minReadySeconds. The API
// server rejects such a Deployment. A nil deadline is valid.
func (v *validator) limits(path string, deadlineSeconds *int, minReadySeconds int) {
	if deadlineSeconds != nil && !v.invalid(path+".minReadySeconds") {
		v.check(*deadlineSeconds > minReadySeconds || *deadlineSeconds < 1, path+".progressDeadlineSeconds", "found %d; expected more than minReadySeconds, which is %d", *deadlineSeconds, minReadySeconds)
		v.number(path+".progressDeadlineSeconds", *deadlineSeconds, minReadySeconds+1, progressDeadlineSecondsMax)
	}
}

// share records an error if the value of maxSurge or maxUnavailable is invalid. The value must be
// a number of pods or a percentage. A nil value is valid.
func (v *validator) share(path string, share *IntOrString) {
	v.check(share == nil || share.isShare(), path, "found %s; expected 0 to %d, or 0%% to 100%%", share, replicasMax)
}

// service records an error for each invalid value in the fields for a Service. These are the
// fields that only a create operation of this kind has, such as ports.
func (v *validator) service(path string, c *Create) {
	if c.ExternalName != "" {
		v.check(!c.Headless, path+".headless", "found headless beside externalName; expected only one of the two fields")
		v.externalName(path, c.ExternalName)
	}
	v.check(len(c.Ports) > 0 || c.Headless || c.ExternalName != "", path+".ports", "found no port; expected at least one, or headless: true")
	v.ports(path, c.Ports)
}

// externalName records an error if the externalName of a Service is neither empty nor a DNS
// subdomain.
func (v *validator) externalName(path, name string) {
	v.check(name == "" || len(validation.IsDNS1123Subdomain(name)) == 0, path+".externalName",
		"found %.80q; expected a domain such as example.com", name)
}

// ports records an error for each invalid port of a Service. If there are several ports, each
// must have a unique name. No two ports may have the same number and protocol.
func (v *validator) ports(path string, found []Port) {
	v.check(len(found) <= portsMax, path+".ports", "found %d ports; expected at most %d", len(found), portsMax)
	several := len(found) > 1 && !v.invalid(path+".ports")
	names, ports := map[string]bool{}, map[Port]bool{}
	for i, port := range found {
		at := fmt.Sprintf("%s.ports[%d]", path, i)
		if port.Name != "" || several {
			v.check(port.Name != "", at+".name", "found nothing; expected a name, because the Service has several ports")
			v.name(at+".name", port.Name)
		}
		v.check(port.Name == "" || !names[port.Name], at+".name", "found port name %q twice; expected each port name once", port.Name)
		names[port.Name] = true
		v.bounded(at, &found[i])
		same := Port{Port: port.Port, Protocol: port.Protocol}
		v.check(!ports[same], at+".port", "found port %d with protocol %s twice; expected each port and protocol once", port.Port, port.Protocol)
		ports[same] = true
		v.check(port.TargetPort == nil || port.TargetPort.isPort(), at+".targetPort",
			"found %s; expected 1 to %d, or the name of a container port", port.TargetPort, portMax)
		oneOf(v, at+".protocol", port.Protocol, TCP, UDP, SCTP)
	}
}
