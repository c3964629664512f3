package endpoints

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	netutils "k8s.io/utils/net"
)

// containers returns a function that adds a container with one port to a pod. If isInit is true,
// it is an init container, and init is its restart policy.
func containers(name string, number int32, protocol corev1.Protocol, init *corev1.ContainerRestartPolicy, isInit bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		container := corev1.Container{
			RestartPolicy: init,
			Ports:         []corev1.ContainerPort{{Name: name, ContainerPort: number, Protocol: protocol}},
		}
		if isInit {
			p.Spec.InitContainers = append(p.Spec.InitContainers, container)
		} else {
			p.Spec.Containers = append(p.Spec.Containers, container)
		}
	}
}

func TestAddressEntries(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	v4, v6 := corev1.IPv4Protocol, corev1.IPv6Protocol
	serves := func(name string, number int32) func(*corev1.Pod) {
		return containers(name, number, corev1.ProtocolTCP, nil, false)
	}
	byName := withPorts(servicePort("http", intstr.FromString("web")))
	both := []string{"10.1.0.1", "fd00::1"}
	tests := []struct {
		name    string
		service *corev1.Service
		pods    []*corev1.Pod
		want    []string
	}{
		{"no pods", newService(), nil, nil},
		{"ready", newService(), []*corev1.Pod{newPod("a", at("10.1.0.1"))}, []string{"http:80/TCP> 10.1.0.1"}},
		{"not ready", newService(), []*corev1.Pod{newPod("a", at("10.1.0.1"), unready)}, []string{"http:80/TCP> !10.1.0.1"}},
		{"readiness unknown", newService(), []*corev1.Pod{newPod("a", at("10.1.0.1"), func(p *corev1.Pod) { p.Status.Conditions = nil })}, []string{"http:80/TCP> !10.1.0.1"}},
		{"not ready, publishNotReadyAddresses", newService(publishNotReady), []*corev1.Pod{newPod("a", at("10.1.0.1"), unready)}, []string{"http:80/TCP> 10.1.0.1"}},
		{"terminating", newService(), []*corev1.Pod{newPod("a", at("10.1.0.1"), terminating)}, nil},
		{"terminating, publishNotReadyAddresses", newService(publishNotReady), []*corev1.Pod{newPod("a", at("10.1.0.1"), terminating, unready)}, []string{"http:80/TCP> 10.1.0.1"}},
		{"failed, condition Ready true", newService(), []*corev1.Pod{newPod("a", at("10.1.0.1"), failed)}, nil},
		{"failed, publishNotReadyAddresses", newService(publishNotReady), []*corev1.Pod{newPod("a", at("10.1.0.1"), failed)}, nil},
		{"succeeded", newService(), []*corev1.Pod{newPod("a", at("10.1.0.1"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, nil},
		{"without an IP", newService(), []*corev1.Pod{newPod("a", nil)}, nil},
		{"status.podIP only", newService(), []*corev1.Pod{newPod("a", nil, func(p *corev1.Pod) { p.Status.PodIP = "10.1.0.1" })}, []string{"http:80/TCP> 10.1.0.1"}},
		{"malformed IP", newService(), []*corev1.Pod{newPod("a", at("localhost"))}, nil},
		{"IP with leading zeros", newService(), []*corev1.Pod{newPod("a", at("010.001.000.001"))}, []string{"http:80/TCP> 10.1.0.1"}},
		{"IP in long form", newService(families(v6)), []*corev1.Pod{newPod("a", at("fd00:0:0::0:01"))}, []string{"http:80/TCP> fd00::1"}},
		{"sorted by IP, ready and not-ready separately", newService(), []*corev1.Pod{
			newPod("c", at("10.1.0.3")), newPod("b", at("10.1.0.2"), unready), newPod("a", at("10.1.0.1")),
		}, []string{"http:80/TCP> 10.1.0.1 10.1.0.3 !10.1.0.2"}},
		{"pods with hostNetwork", newService(), []*corev1.Pod{newPod("b", at("10.1.0.1")), newPod("a", at("10.1.0.1"))}, []string{"http:80/TCP> 10.1.0.1 10.1.0.1"}},

		{"IPv4 first", newService(families(v4, v6)), []*corev1.Pod{newPod("a", both)}, []string{"http:80/TCP> 10.1.0.1"}},
		{"IPv6 first", newService(families(v6, v4)), []*corev1.Pod{newPod("a", both)}, []string{"http:80/TCP> fd00::1"}},
		{"pod without an IP of the family", newService(families(v6)), []*corev1.Pod{newPod("a", both), newPod("b", at("10.1.0.2"))}, []string{"http:80/TCP> fd00::1"}},
		{"headless, IPv6", newService(headless, families(v6)), []*corev1.Pod{newPod("a", both)}, []string{"http:80/TCP> fd00::1"}},
		{"family of the cluster IP", newService(families(), func(s *corev1.Service) { s.Spec.ClusterIP = "fd00:1::1" }), []*corev1.Pod{newPod("a", both)}, []string{"http:80/TCP> fd00::1"}},
		{"family of the cluster IP, IPv4", newService(families()), []*corev1.Pod{newPod("a", []string{"fd00::1", "10.1.0.1"})}, []string{"http:80/TCP> 10.1.0.1"}},
		{"headless, family of the pod IP", newService(headless, families()), []*corev1.Pod{newPod("a", []string{"fd00::1", "10.1.0.1"})}, []string{"http:80/TCP> fd00::1"}},
		{"no cluster IP yet, family of the pod IP", newService(families(), func(s *corev1.Service) { s.Spec.ClusterIP = "" }), []*corev1.Pod{newPod("a", both)}, []string{"http:80/TCP> 10.1.0.1"}},

		{"no ports, cluster IP", newService(withPorts()), []*corev1.Pod{newPod("a", at("10.1.0.1"))}, nil},
		{"no ports, headless", newService(withPorts(), headless), []*corev1.Pod{newPod("b", at("10.1.0.2")), newPod("a", at("10.1.0.1"), unready)}, []string{"> 10.1.0.2 !10.1.0.1"}},
		{"several ports", newService(withPorts(servicePort("https", intstr.FromInt32(443)), servicePort("http", intstr.FromInt32(80)))), []*corev1.Pod{newPod("a", at("10.1.0.1"))}, []string{"http:80/TCP,https:443/TCP> 10.1.0.1"}},
		{"one number, two protocols", newService(withPorts(servicePort("dns", intstr.FromInt32(53)), corev1.ServicePort{Name: "dns-udp", Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(53)})), []*corev1.Pod{newPod("a", at("10.1.0.1"))}, []string{"dns:53/TCP,dns-udp:53/UDP> 10.1.0.1"}},
		{"named port", newService(byName), []*corev1.Pod{newPod("a", at("10.1.0.1"), serves("web", 8080))}, []string{"http:8080/TCP> 10.1.0.1"}},
		{"named port with different numbers", newService(byName), []*corev1.Pod{newPod("a", at("10.1.0.1"), serves("web", 8080)), newPod("b", at("10.1.0.2"), serves("web", 8081))}, []string{"http:8080/TCP> 10.1.0.1", "http:8081/TCP> 10.1.0.2"}},
		{"named port, in the second container", newService(byName), []*corev1.Pod{newPod("a", at("10.1.0.1"), serves("admin", 1), serves("web", 8080))}, []string{"http:8080/TCP> 10.1.0.1"}},
		{"named port that one pod does not have", newService(byName), []*corev1.Pod{newPod("a", at("10.1.0.1"), serves("web", 8080)), newPod("b", at("10.1.0.2"), serves("admin", 1))}, []string{"http:8080/TCP> 10.1.0.1"}},
		{"named port that no pod has, headless", newService(byName, headless), []*corev1.Pod{newPod("a", at("10.1.0.1"))}, nil},
		{"named port with another protocol", newService(byName), []*corev1.Pod{newPod("a", at("10.1.0.1"), containers("web", 1, corev1.ProtocolUDP, nil, false))}, nil},
		{"named port of a sidecar", newService(byName), []*corev1.Pod{newPod("a", at("10.1.0.1"), containers("web", 8080, corev1.ProtocolTCP, &always, true))}, []string{"http:8080/TCP> 10.1.0.1"}},
		{"containers before sidecars", newService(byName), []*corev1.Pod{newPod("a", at("10.1.0.1"), containers("web", 1, corev1.ProtocolTCP, &always, true), serves("web", 2))}, []string{"http:2/TCP> 10.1.0.1"}},
		{"named port of an init container", newService(byName), []*corev1.Pod{newPod("a", at("10.1.0.1"), containers("web", 8080, corev1.ProtocolTCP, nil, true))}, nil},
		{"pod with one of two ports", newService(withPorts(servicePort("http", intstr.FromInt32(80)), servicePort("admin", intstr.FromString("admin")))), []*corev1.Pod{
			newPod("a", at("10.1.0.1"), serves("admin", 90)), newPod("b", at("10.1.0.2")),
		}, []string{"admin:90/TCP> 10.1.0.1", "http:80/TCP> 10.1.0.1 10.1.0.2"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, render(pack(addressEntries(test.service, test.pods)))); diff != "" {
				t.Errorf("subsets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	named := func(hostname, subdomain string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = hostname, subdomain }
	}
	ref := &corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "a", UID: "a"}
	for _, test := range []struct {
		name string
		pod  *corev1.Pod
		want address
	}{
		{"plain", newPod("a", at("10.1.0.1")), address{IP: "10.1.0.1", NodeName: new("node"), TargetRef: ref}},
		{"no node", newPod("a", at("10.1.0.1"), func(p *corev1.Pod) { p.Spec.NodeName = "" }), address{IP: "10.1.0.1", TargetRef: ref}},
		{"subdomain is the Service's name", newPod("a", at("10.1.0.1"), named("a-0", "web")), address{IP: "10.1.0.1", Hostname: "a-0", NodeName: new("node"), TargetRef: ref}},
		{"other subdomain", newPod("a", at("10.1.0.1"), named("a-0", "db")), address{IP: "10.1.0.1", NodeName: new("node"), TargetRef: ref}},
		{"subdomain without hostname", newPod("a", at("10.1.0.1"), named("", "web")), address{IP: "10.1.0.1", NodeName: new("node"), TargetRef: ref}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := addressOf(newService(), test.pod)
			if diff := cmp.Diff(test.want, got); diff != "" || !ok {
				t.Errorf("address, %t (-want +got):\n%s", ok, diff)
			}
		})
	}
}

// FuzzIP checks the address in Endpoints for an arbitrary IP in the status of a pod. The address
// must have the requested family, and the API server must accept it.
func FuzzIP(f *testing.F) {
	for _, ip := range []string{"10.1.0.1", "fd00::1", "", "010.1.0.1", "::ffff:10.1.0.1", "fe80::1%eth0", "1.2.3", "x"} {
		f.Add(ip, true)
		f.Add(ip, false)
	}
	f.Fuzz(func(t *testing.T, reported string, six bool) {
		family := corev1.IPv4Protocol
		if six {
			family = corev1.IPv6Protocol
		}
		got, ok := ipOf(newPod("a", at(reported)), family)
		if ok && (ipFamily(got) != family || netutils.ParseIPSloppy(got).String() != got) {
			t.Errorf("%q is published as %q in %s", reported, got, family)
		}
		if !ok && got != "" {
			t.Errorf("%q gives %q, which is not an IP of family %s", reported, got, family)
		}
	})
}
