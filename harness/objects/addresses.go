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

// AddressesMax is the maximum number of addresses in one Endpoints object.
const AddressesMax = 1000

// PodAddress contains the addresses of a committed or cached pod. It decodes the pod only
// when a caller first needs the addresses, because decoding is expensive.
type PodAddress struct {
	Body    []byte      // of the pod; nil after the first use
	decoded *PodNetwork // nil until first used
	err     error
}

// PodNetwork contains the fields of a pod from which its addresses and ports follow.
type PodNetwork struct {
	Spec   corev1.PodSpec
	Status corev1.PodStatus
}

// Network returns the decoded fields. The first call decodes them.
func (a *PodAddress) Network() (*PodNetwork, error) {
	if a.decoded == nil && a.err == nil {
		a.decoded = &PodNetwork{}
		a.err = Unmarshal(a.Body, a.decoded)
		a.Body = nil
	}
	return a.decoded, a.err
}

// AddressSet contains pairs of an address and a port. The value is true if the address is
// ready.
type AddressSet map[AddressAndPort]bool

// AddressAndPort is one port at one address.
type AddressAndPort struct {
	PodTarget
	Port EndpointPort
}

// PodTarget is an address and the pod behind it.
type PodTarget struct {
	IP, Node, Hostname string
	Pod                string // kind namespace/name
	UID                types.UID
}

// EndpointPort is a port in Endpoints. The zero value means no port, which only headless
// Services may have.
type EndpointPort struct {
	Name, Protocol, Application string
	Number                      int32
}

// String returns the pair as evidence names it.
func (p AddressAndPort) String() string {
	address := p.IP
	if p.Port != (EndpointPort{}) {
		address = fmt.Sprintf("%s:%d", p.IP, p.Port.Number)
	}
	return fmt.Sprintf("%s (%s)", address, cmp.Or(p.Pod, "no targetRef"))
}

// Add adds a pair of an address and a port. If the set already contains the pair, it is
// ready only if both entries are ready.
func (addresses AddressSet) Add(p AddressAndPort, ready bool) {
	if readyBefore, ok := addresses[p]; ok {
		ready = ready && readyBefore
	}
	addresses[p] = ready
}

// Addresses returns the pairs of address and port in all subsets of the Endpoints.
func (e *Endpoints) Addresses() (AddressSet, error) {
	var body struct {
		Subsets []struct {
			Addresses, NotReadyAddresses []corev1.EndpointAddress
			Ports                        []corev1.EndpointPort
		}
	}
	if err := Unmarshal(e.Body, &body); err != nil {
		return nil, fmt.Errorf("%s: %w", e, err)
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

func podTargetOf(a corev1.EndpointAddress) PodTarget {
	target := PodTarget{IP: a.IP, Node: stringOrEmpty(a.NodeName), Hostname: a.Hostname}
	if a.TargetRef != nil {
		target.Pod, target.UID = a.TargetRef.Kind+" "+a.TargetRef.Namespace+"/"+a.TargetRef.Name, a.TargetRef.UID
	}
	return target
}

// EndpointPortOf returns the port that Endpoints list for a Service port. The number is the
// port number at the pod.
func EndpointPortOf(p *corev1.ServicePort, number int32) EndpointPort {
	return EndpointPort{p.Name, string(p.Protocol), stringOrEmpty(p.AppProtocol), number}
}

// IP returns the pod's address in the Service's first IP family. It returns "" if the pod
// has no such address.
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

// Port returns the port number at the pod to which a Service port leads. It returns 0 if
// the pod has no such port.
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

// Size counts the addresses that AddressesMax limits. An address counts once for each
// subset that lists it. Ports with the same addresses share a subset, and each other port
// has its own.
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

func stringOrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
