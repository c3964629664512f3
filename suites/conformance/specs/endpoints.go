package specs

import (
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

// hasAddresses returns a matcher for Endpoints that have exactly the given ready and not-ready
// addresses.
func hasAddresses(ready []string, notReady ...string) types.GomegaMatcher {
	slices.Sort(ready)
	slices.Sort(notReady)
	return testenv.Satisfy(func(e *testenv.Endpoints) bool {
		return e != nil && slices.Equal(e.IPs(true), ready) && slices.Equal(e.IPs(false), notReady)
	}, "Endpoints, ready %v, not ready %v", ready, notReady)
}

// endpointsThat returns a matcher for existing Endpoints. It accepts those for which the
// predicate returns true.
func endpointsThat(predicate func(*testenv.Endpoints) bool, format string, args ...any) types.GomegaMatcher {
	return testenv.Satisfy(func(e *testenv.Endpoints) bool { return e != nil && predicate(e) }, format, args...)
}

// webLabels is the selector of all Services in these Ginkgo specs.
var webLabels = map[string]string{"app": "web"}

// createReadyPod creates a pod that the Services select, and waits until the pod is ready. It
// returns the pod's IP address.
func createReadyPod(ctx ginkgo.SpecContext, n *testenv.Namespace, name string, edits ...func(*corev1.PodTemplateSpec)) (ip string) {
	ginkgo.GinkgoHelper()
	n.RequireSimulatedKubelets("the spec sets the status of pods")
	n.Create(ctx, testenv.NewPod(name, webLabels, edits...))
	pod := n.Eventually(ctx, testenv.GetPod(name), testenv.Satisfy(func(p testenv.Pod) bool {
		return p.Pod != nil && p.Ready() && p.Status.PodIP != ""
	}, "a ready pod with an address")).(testenv.Pod)
	return pod.Status.PodIP
}

// setReady writes the condition Ready of a pod, like a kubelet.
func setReady(ctx ginkgo.SpecContext, n *testenv.Namespace, pod string, ready bool) {
	ginkgo.GinkgoHelper()
	status := map[bool]string{true: "True", false: "False"}[ready]
	n.PatchSubresource(ctx, podRef(pod), "status", `{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, status)
}

func withoutClusterIP(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }

func withExternalName(s *corev1.Service) {
	s.Spec.Type, s.Spec.ExternalName, s.Spec.Selector = corev1.ServiceTypeExternalName, "example.org", webLabels
}

// These Ginkgo specs test the addresses and the metadata of Endpoints.
var _ = ginkgo.Describe("endpoints", func() {
	spec("Endpoints/create Endpoints for Pods matching a Service", "the Endpoints of a Service have the addresses of its ready pods under the port that each resolves",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			n.Create(ctx, testenv.NewService("web", webLabels))
			one := createReadyPod(ctx, n, "one")
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one}))
			two := createReadyPod(ctx, n, "two")
			e := n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one, two})).(*testenv.Endpoints)
			gomega.Expect(e.Subsets).To(gomega.HaveLen(1))
			gomega.Expect(e.Subsets[0].Ports).To(gomega.Equal([]corev1.EndpointPort{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}}))
			n.Delete(ctx, podRef("one"), "")
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{two}))
			n.Delete(ctx, podRef("two"), "")
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasAddresses(nil))
		})

	spec("Endpoints/create and delete Endpoints for a Service with a selector that matches no pods", "a Service that selects no pods has empty Endpoints, which are deleted with it",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			service := n.Create(ctx, testenv.NewService("web", webLabels))
			n.Eventually(ctx, testenv.GetEndpoints("web"), endpointsThat(func(e *testenv.Endpoints) bool { return len(e.Subsets) == 0 }, "Endpoints without subsets"))
			n.Delete(ctx, service, "")
			n.EventuallyWithoutFaults(ctx, testenv.Exists(testenv.Ref{Kind: testenv.EndpointsKind, Name: "web"}), gomega.BeFalse())
		})

	spec("Endpoints/lifecycle of an Endpoint", "the controller does not change Endpoints of a Service without selector",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			n.Create(ctx, testenv.NewService("manual", nil))
			manual := n.Create(ctx, testenv.NewEndpoints("manual", "192.0.2.9"))
			n.Eventually(ctx, testenv.GetEndpoints("manual"), hasAddresses([]string{"192.0.2.9"}))
			n.Patch(ctx, manual, `{"metadata":{"labels":{"patched":"yes"}}}`)
			n.Always("the Endpoints have the address that the user set", func(v *testenv.View) error {
				if e := v.Endpoints("manual"); e == nil || !slices.Equal(e.IPs(true), []string{"192.0.2.9"}) {
					return fmt.Errorf("%s", e)
				}
				return nil
			})
			n.Barrier(ctx)
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("manual"), endpointsThat(func(e *testenv.Endpoints) bool { return e.Labels["patched"] == "yes" }, "the label patched=yes"))
			n.ClearInvariants()
			n.DeleteAll(ctx, testenv.EndpointsKind, map[string]string{"patched": "yes"})
			n.EventuallyWithoutFaults(ctx, testenv.Exists(manual), gomega.BeFalse())
		})

	spec("Endpoints/TestEndpointUpdates", "Endpoints are updated when a pod gets its address, refer to the pod, and are not updated without a change",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			n.Create(ctx, testenv.NewService("web", webLabels))
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses(nil))
			one, pod := createReadyPod(ctx, n, "one"), podRef("one")
			e := n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one})).(*testenv.Endpoints)
			gomega.Expect(e.Subsets[0].Addresses[0].TargetRef).To(gomega.HaveValue(gomega.HaveField("Name", pod.Name)))
			waitDelivered(ctx, n, testenv.Ref{Kind: testenv.EndpointsKind, Name: "web"})
			version := e.ResourceVersion
			n.Always("the Endpoints are not updated", func(v *testenv.View) error {
				if e := v.Endpoints("web"); e == nil || e.ResourceVersion != version {
					return fmt.Errorf("%s", e)
				}
				return nil
			})
			n.Patch(ctx, pod, `{"metadata":{"annotations":{"touch":"1"}}}`)
			waitDelivered(ctx, n, pod)
			n.Barrier(ctx)
		})

	spec("Endpoints/TestEndpointWithMultiplePodUpdates", "Endpoints are correct after a pod changes its readiness several times in quick succession",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			n.Create(ctx, testenv.NewService("web", webLabels))
			one := createReadyPod(ctx, n, "one")
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one}))
			for _, ready := range []bool{false, true, false, true, false} {
				setReady(ctx, n, "one", ready)
			}
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses(nil, one))
			setReady(ctx, n, "one", true)
			setReady(ctx, n, "one", false)
			setReady(ctx, n, "one", true)
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one}))
		})

	spec("Endpoints/TestExternalNameToClusterIPTransition", "an ExternalName Service has no Endpoints until its type becomes ClusterIP",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			one := createReadyPod(ctx, n, "one")
			service := n.Create(ctx, testenv.NewService("web", webLabels, withExternalName))
			n.Always("the Service has no Endpoints", func(v *testenv.View) error {
				if e := v.Endpoints("web"); e != nil {
					return fmt.Errorf("%s", e)
				}
				return nil
			})
			waitDelivered(ctx, n, service)
			n.Barrier(ctx)
			n.ClearInvariants()
			n.Patch(ctx, service, `{"spec":{"type":"ClusterIP","externalName":null}}`)
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one}))
		})

	spec("Endpoints/TestEndpointWithTerminatingPod", "Endpoints exclude a terminating pod although it is still ready",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			n.Create(ctx, testenv.NewService("web", webLabels))
			one, pod := createReadyPod(ctx, n, "one", testenv.WithFinalizer), podRef("one")
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one}))
			n.Delete(ctx, pod, "")
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasAddresses(nil))
			n.EventuallyWithoutFaults(ctx, testenv.GetPod(pod.Name), testenv.Satisfy(func(p testenv.Pod) bool { return p.Pod != nil && p.Terminating() && p.Ready() }, "a ready, terminating pod"))
		})

	spec("Endpoints/TestEndpointTruncate", "Endpoints are truncated to 1000 addresses with ready ones first, and the annotation says so as long as they are",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			n.RequireSimulatedKubelets("two real nodes do not take 1002 pods")
			const limit, surplus = 1000, 2
			n.CreatePods(ctx, limit+surplus, func(i int) *corev1.Pod { return testenv.NewPod(fmt.Sprintf("pod-%d", i), webLabels) })
			n.Eventually(ctx, testenv.GetPods(), testenv.Satisfy(func(all testenv.Pods) bool {
				return len(all.Filter(testenv.Pod.Ready)) == limit+surplus
			}, "%d ready pods", limit+surplus))
			for i := range surplus {
				setReady(ctx, n, fmt.Sprintf("pod-%d", i), false)
			}
			n.Create(ctx, testenv.NewService("web", webLabels))
			n.Eventually(ctx, testenv.GetEndpoints("web"), endpointsThat(func(e *testenv.Endpoints) bool {
				return len(e.IPs(true)) == limit && len(e.IPs(false)) == 0 && e.Annotations[corev1.EndpointsOverCapacity] == "truncated"
			}, "1000 ready addresses, marked as truncated"))
			for i := range surplus {
				n.Delete(ctx, podRef(fmt.Sprintf("pod-%d", i)), "")
			}
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), endpointsThat(func(e *testenv.Endpoints) bool {
				_, marked := e.Annotations[corev1.EndpointsOverCapacity]
				return len(e.IPs(true)) == limit && !marked
			}, "1000 ready addresses, not marked"))
		})

	spec("Endpoints/TestEndpointsControllersLabelSemantics", "Endpoints have the labels of their Service and the managed-by label",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			service := n.Create(ctx, testenv.NewService("web", webLabels, func(s *corev1.Service) { s.Labels = map[string]string{"team": "one"} }))
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasLabels(map[string]string{"team": "one", managedBy: "endpoint-controller"}))
			n.Patch(ctx, service, `{"metadata":{"labels":{"team":"two","more":"yes"}}}`)
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasLabels(map[string]string{"team": "two", "more": "yes", managedBy: "endpoint-controller"}))
			n.Patch(ctx, service, `{"metadata":{"labels":null}}`)
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasLabels(map[string]string{managedBy: "endpoint-controller"}))
		})

	spec("Endpoints/TestEndpointsHeadlessLabel", "the Endpoints of a headless Service have the headless label, also after a user removed it",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			n.Create(ctx, testenv.NewService("web", webLabels, withoutClusterIP))
			want := map[string]string{corev1.IsHeadlessService: "", managedBy: "endpoint-controller"}
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasLabels(want))
			n.Patch(ctx, testenv.Ref{Kind: testenv.EndpointsKind, Name: "web"}, `{"metadata":{"labels":{%q:null}}}`, corev1.IsHeadlessService)
			// A new pod makes the controller sync the Service. A change of the Endpoints does not.
			one := createReadyPod(ctx, n, "one")
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one}))
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasLabels(want))
		})

	spec("Endpoints/TestDualStackEndpoints", "Endpoints have addresses of the first IP family of their Service",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			createReadyPod(ctx, n, "both")
			n.PatchSubresource(ctx, podRef("both"), "status", `{"status":{"podIP":"192.0.2.1","podIPs":[{"ip":"192.0.2.1"},{"ip":"2001:db8::1"}]}}`)
			families := func(all ...corev1.IPFamily) func(*corev1.Service) {
				return func(s *corev1.Service) { s.Spec.IPFamilies = all }
			}
			dual := func(s *corev1.Service) { s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack) }
			n.Create(ctx, testenv.NewService("four", webLabels, families(corev1.IPv4Protocol)))
			n.Create(ctx, testenv.NewService("six", webLabels, families(corev1.IPv6Protocol)))
			n.Create(ctx, testenv.NewService("four-six", webLabels, dual, families(corev1.IPv4Protocol, corev1.IPv6Protocol)))
			n.Create(ctx, testenv.NewService("six-four", webLabels, dual, families(corev1.IPv6Protocol, corev1.IPv4Protocol)))
			for name, ip := range map[string]string{"four": "192.0.2.1", "six": "2001:db8::1", "four-six": "192.0.2.1", "six-four": "2001:db8::1"} {
				n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints(name), hasAddresses([]string{ip}))
			}
		})

	spec("Endpoints/statement 1", "a pod whose labels change moves to the Endpoints of the Service that selects it",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			n.Create(ctx, testenv.NewService("web", webLabels))
			n.Create(ctx, testenv.NewService("other", map[string]string{"app": "other"}))
			one := createReadyPod(ctx, n, "one")
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one}))
			n.Patch(ctx, podRef("one"), `{"metadata":{"labels":{"app":"other"}}}`)
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses(nil))
			n.Eventually(ctx, testenv.GetEndpoints("other"), hasAddresses([]string{one}))
			other := testenv.Ref{Kind: testenv.EndpointsKind, Name: "other"}
			first := n.Eventually(ctx, testenv.GetUID(other), gomega.Not(gomega.BeEmpty()))
			n.Delete(ctx, other, "") // the controller must create the Endpoints again
			n.Eventually(ctx, testenv.GetUID(other), gomega.Not(gomega.Equal(first)))
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("other"), hasAddresses([]string{one}))
		})

	spec("Endpoints/statement 3", "publishNotReadyAddresses adds unready and terminating pods to the ready addresses, but no failed pods",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			n.Create(ctx, testenv.NewService("strict", webLabels))
			n.Create(ctx, testenv.NewService("lax", webLabels, func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }))
			ready, unready := createReadyPod(ctx, n, "ready"), createReadyPod(ctx, n, "unready")
			setReady(ctx, n, "unready", false)
			terminating := createReadyPod(ctx, n, "terminating", testenv.WithFinalizer)
			n.Delete(ctx, podRef("terminating"), "")
			failed := createReadyPod(ctx, n, "failed")
			n.Eventually(ctx, testenv.GetEndpoints("lax"), hasAddresses([]string{ready, unready, terminating, failed}))
			n.PatchSubresource(ctx, podRef("failed"), "status", `{"status":{"phase":"Failed"}}`)
			n.Create(ctx, testenv.NewPod("addressless", webLabels, testenv.Unschedulable))
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("strict"), hasAddresses([]string{ready}, unready))
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("lax"), hasAddresses([]string{ready, unready, terminating}))
		})

	spec("Endpoints/statement 5", "an address refers to its pod and node, and has a hostname only if the pod's subdomain is the name of the Service",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			for name, subdomain := range map[string]string{"inside": "web", "outside": "other"} {
				n.Create(ctx, testenv.NewPod(name, webLabels, func(t *corev1.PodTemplateSpec) { t.Spec.Hostname, t.Spec.Subdomain = name, subdomain }))
				n.Eventually(ctx, testenv.GetPod(name), testenv.Satisfy(testenv.Pod.Ready, "a ready pod"))
			}
			n.Create(ctx, testenv.NewService("web", webLabels, withoutClusterIP))
			e := n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), endpointsThat(func(e *testenv.Endpoints) bool { return len(e.IPs(true)) == 2 }, "2 ready addresses")).(*testenv.Endpoints)
			for _, address := range e.Subsets[0].Addresses {
				pod := n.Eventually(ctx, testenv.GetPod(address.TargetRef.Name), testenv.Satisfy(func(p testenv.Pod) bool { return p.Pod != nil }, "the pod")).(testenv.Pod)
				gomega.Expect(*address.TargetRef).To(gomega.Equal(corev1.ObjectReference{Kind: "Pod", Namespace: n.Name, Name: pod.Name, UID: pod.UID}))
				gomega.Expect(address.IP).To(gomega.Equal(pod.Status.PodIP))
				gomega.Expect(address.NodeName).To(gomega.HaveValue(gomega.Equal(pod.Spec.NodeName)))
				gomega.Expect(address.Hostname).To(gomega.Equal(map[string]string{"inside": "inside", "outside": ""}[pod.Name]))
			}
		})

	spec("Endpoints/statement 6", "a named target port resolves for each pod separately, and excludes pods without that port",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			ports := func(all ...corev1.ContainerPort) func(*corev1.PodTemplateSpec) {
				return func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Ports = all }
			}
			usual := createReadyPod(ctx, n, "usual")
			unusual := createReadyPod(ctx, n, "unusual", ports(corev1.ContainerPort{Name: "http", ContainerPort: 9090}))
			createReadyPod(ctx, n, "without", ports())
			n.Create(ctx, testenv.NewService("web", webLabels))
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), endpointsThat(func(e *testenv.Endpoints) bool {
				byPort := map[int32][]string{}
				for _, subset := range e.Subsets {
					for _, address := range subset.Addresses {
						byPort[subset.Ports[0].Port] = append(byPort[subset.Ports[0].Port], address.IP)
					}
				}
				return len(byPort) == 2 && slices.Equal(byPort[8080], []string{usual}) && slices.Equal(byPort[9090], []string{unusual})
			}, "%s with port 8080 and %s with port 9090", usual, unusual))
		})
	spec("Endpoints/statement 6", "a headless Service without ports has addresses in a subset without ports",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			one := createReadyPod(ctx, n, "one")
			n.Create(ctx, testenv.NewService("web", webLabels, withoutClusterIP, func(s *corev1.Service) { s.Spec.Ports = nil }))
			e := n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one})).(*testenv.Endpoints)
			gomega.Expect(e.Subsets).To(gomega.HaveLen(1))
			gomega.Expect(e.Subsets[0].Ports).To(gomega.BeEmpty())
		})

	spec("Endpoints/statement 8", "ports with the same addresses share a subset, and each address appears once",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			ips := []string{createReadyPod(ctx, n, "one"), createReadyPod(ctx, n, "two"), createReadyPod(ctx, n, "three")}
			n.Create(ctx, testenv.NewService("web", webLabels, func(s *corev1.Service) {
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "more", Port: 81, TargetPort: intstr.FromInt32(9090)})
			}))
			e := n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasAddresses(ips)).(*testenv.Endpoints)
			gomega.Expect(e.Subsets).To(gomega.HaveLen(1))
			gomega.Expect(e.Subsets[0].Ports).To(gomega.ConsistOf(
				gomega.HaveField("Port", gomega.BeEquivalentTo(8080)), gomega.HaveField("Port", gomega.BeEquivalentTo(9090))))
			gomega.Expect(e.Subsets[0].Addresses).To(gomega.HaveLen(3))
		})

	spec("Endpoints/statement 9", "Endpoints keep annotations that the controller does not own",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			n.Create(ctx, testenv.NewService("web", webLabels))
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses(nil))
			n.Patch(ctx, testenv.Ref{Kind: testenv.EndpointsKind, Name: "web"}, `{"metadata":{"annotations":{"note":"kept"}}}`)
			one := createReadyPod(ctx, n, "one")
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one}))
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), endpointsThat(func(e *testenv.Endpoints) bool { return e.Annotations["note"] == "kept" }, "the annotation note=kept"))
		})

	spec("Endpoints/statement 11", "the controller updates Endpoints eventually although its cache does not yet have its own last update",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			n.Create(ctx, testenv.NewService("web", webLabels))
			one, pod := createReadyPod(ctx, n, "one"), podRef("one")
			setReady(ctx, n, "one", false)
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses(nil, one))
			waitDelivered(ctx, n, testenv.Ref{Kind: testenv.EndpointsKind, Name: "web"})
			heal := n.Inject(ctx, "watch-stall", `{resource: endpoints}`)
			setReady(ctx, n, "one", true)
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one}))
			setReady(ctx, n, "one", false) // now the pod has the same readiness as in the stale cache
			waitDelivered(ctx, n, pod)
			n.BarrierOf(ctx, testenv.DeploymentKind)
			heal(ctx)
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasAddresses(nil, one))
		})

	spec("Endpoints/statement 12", "the controller emits an event when an update of Endpoints fails",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			n.Create(ctx, testenv.NewService("web", webLabels))
			n.Eventually(ctx, testenv.GetEndpoints("web"), hasAddresses(nil))
			n.Inject(ctx, "api-error", fmt.Sprintf(`{verb: update, resource: endpoints, namespace: %s, code: 500, times: 3}`, n.Name))
			one := createReadyPod(ctx, n, "one")
			n.Eventually(ctx, testenv.GetEvents(testenv.Ref{Kind: testenv.EndpointsKind, Name: "web"}), eventWithPrefix("Warning FailedToUpdateEndpoint (endpoint-controller): "))
			n.EventuallyWithoutFaults(ctx, testenv.GetEndpoints("web"), hasAddresses([]string{one}))
		})

	spec("Endpoints/statement 14", "a controller that starts deletes Endpoints without a Service, except those with a leader election annotation",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			orphan := n.Create(ctx, testenv.NewEndpoints("orphan", "192.0.2.9"))
			leader := testenv.NewEndpoints("leader", "192.0.2.9")
			leader.Annotations = map[string]string{"control-plane.alpha.kubernetes.io/leader": `{"holderIdentity":"x","leaseDurationSeconds":15,"acquireTime":"2020-01-01T00:00:00Z","renewTime":"2020-01-01T00:00:00Z","leaderTransitions":0}`}
			kept := n.Create(ctx, leader)
			n.Eventually(ctx, testenv.Exists(orphan), gomega.BeTrue())
			n.Eventually(ctx, testenv.Exists(kept), gomega.BeTrue())
			n.Always("the Endpoints with the leader election annotation exist", func(v *testenv.View) error {
				if !v.Has(kept) {
					return fmt.Errorf("found no Endpoints %s", kept.Name)
				}
				return nil
			})
			n.Restart(ctx)
			n.EventuallyWithoutFaults(ctx, testenv.Exists(orphan), gomega.BeFalse())
			n.Barrier(ctx)
		})
})

const managedBy = "endpoints.kubernetes.io/managed-by"

// hasLabels returns a matcher for Endpoints that have exactly the given labels.
func hasLabels(want map[string]string) types.GomegaMatcher {
	return endpointsThat(func(e *testenv.Endpoints) bool {
		return fmt.Sprint(e.Labels) == fmt.Sprint(want)
	}, "the labels %v", want)
}
