package objects

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// AddressesMax is the maximum number of addresses that the Endpoints controller writes to one
// Endpoints object.
const AddressesMax = 1000

// PodAddress gives access to the addresses of one version of a pod. Decoding is expensive, so
// PodAddress decodes the pod only when a caller first needs the addresses.
type PodAddress struct {
	Body    []byte      // the JSON body of the pod; nil after the first call of Network
	decoded *PodNetwork // the result of Network; nil before the first call of Network
	err     error       // the error of the first call of Network
}

// PodNetwork contains the fields of a pod that determine its addresses and ports.
type PodNetwork struct {
	Spec   corev1.PodSpec
	Status corev1.PodStatus
}

// Network returns the fields of the pod that contain its addresses and ports. The first
// call decodes the body of the pod, and later calls return the same result.
func (a *PodAddress) Network() (*PodNetwork, error) {
	if a.decoded == nil && a.err == nil {
		a.decoded = &PodNetwork{}
		a.err = Unmarshal(a.Body, a.decoded)
		a.Body = nil
	}
	return a.decoded, a.err
}

// AddressSet is the set of addresses with ports in an Endpoints object. The value is true if the
// address is ready.
type AddressSet map[AddressAndPort]bool

// AddressAndPort is one address of a pod together with one port.
type AddressAndPort struct {
	PodTarget
	Port EndpointPort
}

// PodTarget is an IP address in Endpoints, and the pod that has this address.
type PodTarget struct {
	IP, Node, Hostname string
	Pod                string    // the address's targetRef as "kind namespace/name"; "" without targetRef
	UID                types.UID // the UID in the address's targetRef
}

// EndpointPort is a port in Endpoints. The zero value stands for an address without ports, which
// only headless Services can have.
type EndpointPort struct {
	Name, Protocol, Application string // Application is the appProtocol
	Number                      int32
}

// String returns the address as text for the evidence of a violation, such as "10.0.0.7:8080 (Pod
// default/web-1)".
func (p AddressAndPort) String() string {
	address := p.IP
	if p.Port != (EndpointPort{}) {
		address = fmt.Sprintf("%s:%d", p.IP, p.Port.Number)
	}
	return fmt.Sprintf("%s (%s)", address, cmp.Or(p.Pod, "no targetRef"))
}

// Add adds an address with a port to the set. If the set already contains both, the address stays
// ready only if the argument ready is true too.
func (addresses AddressSet) Add(p AddressAndPort, ready bool) {
	if readyBefore, ok := addresses[p]; ok {
		ready = ready && readyBefore
	}
	addresses[p] = ready
}

// Addresses returns all addresses with their ports, from all subsets of the Endpoints.
func (e *Endpoints) Addresses() (AddressSet, error) {
	var body struct {
		Subsets []struct {
			Addresses, NotReadyAddresses []corev1.EndpointAddress
			Ports                        []corev1.EndpointPort
		}
	}
	if err := Unmarshal(e.Body, &body); err != nil {
		return nil, fmt.Errorf("decoding the addresses of %s: %w", e, err)
	}
	all := AddressSet{}
	for i := range body.Subsets {
		subset := &body.Subsets[i]
		ports := []EndpointPort{{}}
		if len(subset.Ports) > 0 {
			ports = nil
		}
		for _, p := range subset.Ports {
			ports = append(ports, EndpointPort{p.Name, string(p.Protocol), stringOrEmpty(p.AppProtocol), p.Port})
		}
		for _, p := range ports {
			for _, a := range subset.Addresses {
				all.Add(AddressAndPort{podTargetOf(a), p}, true)
			}
			for _, a := range subset.NotReadyAddresses {
				all.Add(AddressAndPort{podTargetOf(a), p}, false)
			}
		}
	}
	return all, nil
}

// podTargetOf returns an address in Endpoints, and the pod to which its targetRef refers.
func podTargetOf(a corev1.EndpointAddress) PodTarget {
	target := PodTarget{IP: a.IP, Node: stringOrEmpty(a.NodeName), Hostname: a.Hostname}
	if a.TargetRef != nil {
		target.Pod, target.UID = a.TargetRef.Kind+" "+a.TargetRef.Namespace+"/"+a.TargetRef.Name, a.TargetRef.UID
	}
	return target
}

// EndpointPortOf returns the port that Endpoints must list for a port of a Service. The argument
// number is the port number in the pod.
func EndpointPortOf(p *corev1.ServicePort, number int32) EndpointPort {
	return EndpointPort{p.Name, string(p.Protocol), stringOrEmpty(p.AppProtocol), number}
}

// IP returns the pod's first IP address in the first IP family of the Service. If the Service has
// no IP families, any address counts. IP returns "" if the pod has no such address.
func (r *PodNetwork) IP(s *Service) string {
	ips := r.Status.PodIPs
	if len(ips) == 0 && r.Status.PodIP != "" {
		ips = []corev1.PodIP{{IP: r.Status.PodIP}}
	}
	for _, each := range ips {
		parsed, err := netip.ParseAddr(each.IP)
		switch {
		case err != nil:
		case len(s.Spec.IPFamilies) == 0, (s.Spec.IPFamilies[0] == corev1.IPv6Protocol) == parsed.Is6():
			return each.IP
		}
	}
	return ""
}

// Port returns the port number of the pod to which a Service port refers with targetPort. If
// targetPort is not set, the result is the port number of the Service. The result is 0 if
// targetPort is a name that no container port of the pod has.
func (r *PodNetwork) Port(p *corev1.ServicePort) int32 {
	if p.TargetPort.Type == intstr.Int {
		if p.TargetPort.IntVal == 0 {
			return p.Port
		}
		return p.TargetPort.IntVal
	}
	containers := slices.Clone(r.Spec.Containers)
	for _, c := range r.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways { // a sidecar
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		for _, each := range c.Ports {
			if each.Name == p.TargetPort.StrVal && each.Protocol == p.Protocol {
				return each.ContainerPort
			}
		}
	}
	return 0
}

// Size returns how many addresses count toward [AddressesMax], and how many of these are ready.
//
// If two ports have exactly the same addresses, they share one subset of the Endpoints, and each
// address counts once. Otherwise each port has its own subset, and an address counts once for
// each subset that lists the address.
func (addresses AddressSet) Size() (total, ready int) {
	targets := map[EndpointPort][]string{}
	readyAt := map[EndpointPort]int{}
	for p, isReady := range addresses {
		targets[p.Port] = append(targets[p.Port], fmt.Sprintf("%s %s %t", p.IP, p.UID, isReady))
		if isReady {
			readyAt[p.Port]++
		}
	}
	lists := map[string]EndpointPort{}
	for p, at := range targets {
		slices.Sort(at)
		lists[strings.Join(at, "\n")] = p
	}
	for _, p := range lists {
		total += len(targets[p])
		ready += readyAt[p]
	}
	return total, ready
}

// stringOrEmpty returns the string to which the argument s points, or "" if it is nil.
func stringOrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
