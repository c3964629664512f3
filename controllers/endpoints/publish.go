package endpoints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	netutils "k8s.io/utils/net"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
)

// managesEndpoints reports whether the controller manages the Endpoints of a Service. It does not
// manage them if the Service has the type ExternalName or no selector.
func managesEndpoints(service *corev1.Service) bool {
	return service.Spec.Type != corev1.ServiceTypeExternalName && len(service.Spec.Selector) > 0
}

// selects reports whether the Service's selector matches the given labels. The selector must not be
// empty.
func selects(service *corev1.Service, labels map[string]string) bool {
	for key, value := range service.Spec.Selector {
		if actual, present := labels[key]; !present || actual != value {
			return false
		}
	}
	return true
}

// addressEntries returns the addresses and ports for the Endpoints of a Service: one entry for
// each pod. A pod has an entry if it has an IP address and at least one port for the Service.
// For a headless Service without ports, the IP address is enough.
//
// Terminal pods have no entry. Terminating pods have an entry only if the Service has
// publishNotReadyAddresses.
func addressEntries(service *corev1.Service, pods []*corev1.Pod) []addressEntry {
	entries := make([]addressEntry, 0, len(pods))
	for _, pod := range pods {
		if podutil.Terminal(pod) || (pod.DeletionTimestamp != nil && !service.Spec.PublishNotReadyAddresses) {
			continue
		}
		address, ok := addressOf(service, pod)
		if !ok {
			continue
		}
		ports := portsOf(service, pod)
		if len(ports) == 0 && !publishesWithoutPorts(service) {
			continue
		}
		_, ready := podutil.Ready(pod)
		entries = append(entries, addressEntry{address: address, ready: ready || service.Spec.PublishNotReadyAddresses, ports: ports})
	}
	return entries
}

// publishesWithoutPorts reports whether the Service has no ports but gets addresses
// nevertheless. Only a headless Service does, because a cluster IP without ports forwards no
// traffic.
func publishesWithoutPorts(service *corev1.Service) bool {
	return len(service.Spec.Ports) == 0 && service.Spec.ClusterIP == corev1.ClusterIPNone
}

// addressOf returns the Endpoints address of a pod, in the IP family of the Service. The result
// ok is false if the pod has no IP of this family.
func addressOf(service *corev1.Service, pod *corev1.Pod) (a address, ok bool) {
	ip, ok := ipOf(pod, familyOf(service, pod))
	if !ok {
		return address{}, false
	}
	a = address{
		IP:        ip,
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	if pod.Spec.NodeName != "" {
		a.NodeName = &pod.Spec.NodeName // points into a cached pod, so do not modify the string
	}
	if pod.Spec.Subdomain == service.Name {
		a.Hostname = pod.Spec.Hostname
	}
	return a, true
}

// familyOf returns the IP family of the addresses in the Endpoints of a Service. The result is
// the first element of spec.ipFamilies.
//
// A Service that an old API server stored may have no ipFamilies. The result is then the family
// of the cluster IP or, without a cluster IP, of the pod's IP.
func familyOf(service *corev1.Service, pod *corev1.Pod) corev1.IPFamily {
	switch {
	case len(service.Spec.IPFamilies) > 0:
		return service.Spec.IPFamilies[0]
	case service.Spec.ClusterIP != "" && service.Spec.ClusterIP != corev1.ClusterIPNone:
		return ipFamily(service.Spec.ClusterIP)
	default:
		return ipFamily(pod.Status.PodIP)
	}
}

// ipFamily returns the family of an IP address: IPv4 or IPv6.
func ipFamily(ip string) corev1.IPFamily {
	if netutils.IsIPv6String(ip) {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// ipOf returns the first IP of a pod in the given family, in canonical form. The bool result is
// false if the pod has no such IP.
//
// The canonical form has no leading zeros. A container runtime may report an IP with leading
// zeros, which the API server rejects in Endpoints.
func ipOf(pod *corev1.Pod, family corev1.IPFamily) (string, bool) {
	for _, reported := range ipsOf(pod) {
		ip := netutils.ParseIPSloppy(reported)
		if ip != nil && netutils.IsIPv6(ip) == (family == corev1.IPv6Protocol) {
			return ip.String(), true
		}
	}
	return "", false
}

// ipsOf returns all IPs in the status of a pod.
func ipsOf(pod *corev1.Pod) []string {
	if len(pod.Status.PodIPs) == 0 && pod.Status.PodIP != "" {
		return []string{pod.Status.PodIP}
	}
	ips := make([]string, len(pod.Status.PodIPs))
	for i, reported := range pod.Status.PodIPs {
		ips[i] = reported.IP
	}
	return ips
}

// portsOf returns the Endpoints ports of a pod. It returns one port for each port of the Service
// that the pod has; see resolvePort.
func portsOf(service *corev1.Service, pod *corev1.Pod) []portID {
	ports := make([]portID, 0, len(service.Spec.Ports))
	for i := range service.Spec.Ports {
		wanted := &service.Spec.Ports[i]
		number, ok := resolvePort(pod, wanted)
		if !ok {
			continue
		}
		ports = append(ports, portIDOf(port{
			Name: wanted.Name, Port: number, Protocol: wanted.Protocol, AppProtocol: wanted.AppProtocol,
		}))
	}
	return ports
}

// resolvePort returns the port number of a pod for one port of a Service. If the Service's target
// port is a number, this number is the result. If the target port is a name, resolvePort looks for
// a container port with this name and the same protocol. It looks first in the containers and then
// in the sidecars. The result ok is false if no container has such a port.
func resolvePort(pod *corev1.Pod, wanted *corev1.ServicePort) (number int32, ok bool) {
	if wanted.TargetPort.Type == intstr.Int {
		return wanted.TargetPort.IntVal, true
	}
	named := func(p corev1.ContainerPort) bool {
		return p.Name == wanted.TargetPort.StrVal && p.Protocol == wanted.Protocol
	}
	for i := range pod.Spec.Containers {
		if at := slices.IndexFunc(pod.Spec.Containers[i].Ports, named); at >= 0 {
			return pod.Spec.Containers[i].Ports[at].ContainerPort, true
		}
	}
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		if !podutil.IsSidecar(container) {
			continue
		}
		if at := slices.IndexFunc(container.Ports, named); at >= 0 {
			return container.Ports[at].ContainerPort, true
		}
	}
	return 0, false
}
