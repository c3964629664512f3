package operator

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// checkService returns an error about the ports or the type of a Service.
func checkService(at string, s *corev1.ServiceSpec) error {
	external := s.Type == corev1.ServiceTypeExternalName
	switch {
	case external && s.ExternalName == "":
		return wrong(at+".externalName", nil, "a domain, because the type is ExternalName")
	case !external && len(s.Ports) == 0 && s.ClusterIP != corev1.ClusterIPNone:
		return wrong(at+".ports", nil, "at least one port, or clusterIP: None")
	case external && len(validation.IsDNS1123Subdomain(strings.TrimSuffix(s.ExternalName, "."))) > 0:
		return wrong(at+".externalName", s.ExternalName, "a domain such as example.com, without a scheme and a port")
	}
	for i, address := range append([]string{s.ClusterIP}, s.ClusterIPs...) {
		if _, err := netip.ParseAddr(address); err != nil && address != "" && address != corev1.ClusterIPNone {
			at := at + ".clusterIP"
			if i > 0 {
				at = fmt.Sprintf("%ss[%d]", at, i-1)
			}
			return wrong(at, address, "None, the address of a Service, or no such field"+nearest.Suggestion(address, []string{corev1.ClusterIPNone}))
		}
	}
	if err := checkLabels(at+".selector", s.Selector); err != nil {
		return err
	}
	names, numbers := map[string]bool{}, map[string]bool{}
	for i, port := range s.Ports {
		at := fmt.Sprintf("%s.ports[%d]", at, i)
		switch {
		case port.Name == "" && len(s.Ports) > 1:
			return wrong(at+".name", nil, "a name, because the Service has several ports")
		case port.Name != "" && len(validation.IsDNS1123Label(port.Name)) > 0:
			return wrong(at+".name", port.Name, dnsLabel)
		case names[port.Name]:
			return fmt.Errorf("%s.name: found %q twice; expected each name once", at, port.Name)
		case len(validation.IsValidPortNum(int(port.Port))) > 0:
			return wrong(at+".port", port.Port, portRange)
		case port.NodePort != 0 && len(validation.IsValidPortNum(int(port.NodePort))) > 0:
			return wrong(at+".nodePort", port.NodePort, portRange)
		case port.NodePort != 0 && (s.Type == "" || s.Type == corev1.ServiceTypeClusterIP):
			return wrong(at+".nodePort", port.NodePort, "no such field, because only the types NodePort and LoadBalancer have it")
		}
		names[port.Name] = true
		number := fmt.Sprintf("%d/%s", port.Port, cmp.Or(port.Protocol, corev1.ProtocolTCP))
		if numbers[number] {
			return fmt.Errorf("%s.port: found %s twice; expected each port once", at, number)
		}
		numbers[number] = true
		if port.TargetPort != (intstr.IntOrString{}) {
			if err := checkPort(at+".targetPort", port.TargetPort); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkIngress returns an error about the rules and backends of an Ingress.
func checkIngress(at string, s *networkingv1.IngressSpec) error {
	if len(s.Rules) == 0 && s.DefaultBackend == nil {
		return wrong(at, nil, "rules or defaultBackend")
	}
	for i, rule := range s.Rules {
		if host := strings.TrimPrefix(rule.Host, "*."); rule.Host != "" && len(validation.IsDNS1123Subdomain(host)) > 0 {
			return wrong(fmt.Sprintf("%s.rules[%d].host", at, i), rule.Host, "a domain such as example.com or *.example.com, without a scheme and a port")
		}
	}
	return nil
}

func checkIngressPath(at string, p *networkingv1.HTTPIngressPath) error {
	switch {
	case p.PathType == nil:
		return wrong(at+".pathType", nil, "Exact, Prefix or ImplementationSpecific")
	case *p.PathType != networkingv1.PathTypeImplementationSpecific && !strings.HasPrefix(p.Path, "/"):
		return wrong(at+".path", p.Path, "a path that begins with /")
	}
	return nil
}

func checkIngressBackend(at string, b *networkingv1.IngressBackend) error {
	switch {
	case b.Service == nil && b.Resource == nil:
		return wrong(at, nil, "service or resource")
	case b.Service != nil && b.Service.Name == "":
		return wrong(at+".service.name", nil, "the name of a Service")
	case b.Service != nil && b.Service.Port.Name == "" && b.Service.Port.Number == 0:
		return wrong(at+".service.port", nil, "the number or the name of a port")
	case b.Service != nil && b.Service.Port.Number != 0 && len(validation.IsValidPortNum(int(b.Service.Port.Number))) > 0:
		return wrong(at+".service.port.number", b.Service.Port.Number, portRange)
	}
	return nil
}

func checkNetworkPeer(at string, p *networkingv1.NetworkPolicyPeer) error {
	switch {
	case p.IPBlock == nil && p.PodSelector == nil && p.NamespaceSelector == nil:
		return wrong(at, nil, "podSelector, namespaceSelector or ipBlock")
	case p.IPBlock != nil && (p.PodSelector != nil || p.NamespaceSelector != nil):
		return fmt.Errorf("%s: found ipBlock and a selector; expected one of them", at)
	}
	return nil
}

func checkIPBlock(at string, b *networkingv1.IPBlock) error {
	all, err := netip.ParsePrefix(b.CIDR)
	if err != nil {
		return wrong(at+".cidr", b.CIDR, "a range of addresses such as 10.0.0.0/8")
	}
	for i, text := range b.Except {
		part, err := netip.ParsePrefix(text)
		if err != nil || part.Bits() <= all.Bits() || !all.Contains(part.Addr()) {
			return wrong(fmt.Sprintf("%s.except[%d]", at, i), text, "a smaller range of addresses inside "+b.CIDR)
		}
	}
	return nil
}

func checkNetworkPort(at string, p *networkingv1.NetworkPolicyPort) error {
	switch {
	case p.EndPort == nil && p.Port == nil:
		return nil
	case p.EndPort == nil:
		return checkPort(at+".port", *p.Port)
	case p.Port == nil || p.Port.Type == intstr.String:
		return wrong(at+".endPort", *p.EndPort, "no such field, because port is not a number")
	case *p.EndPort < p.Port.IntVal:
		return wrong(at+".endPort", *p.EndPort, fmt.Sprintf("at least port, which is %d", p.Port.IntVal))
	case *p.EndPort > 65535:
		return wrong(at+".endPort", *p.EndPort, portRange)
	}
	return checkPort(at+".port", *p.Port)
}
