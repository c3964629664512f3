package kube

import "k8s.io/apimachinery/pkg/runtime/schema"

// The names of frequently used kinds.
const (
	Pod                   = "Pod"
	ReplicaSet            = "ReplicaSet"
	ReplicationController = "ReplicationController"
	Deployment            = "Deployment"
	Service               = "Service"
	Endpoints             = "Endpoints"
)

// Kinds is the table of all kinds that the test harness knows, sorted by name.
var Kinds = []Kind{
	{Name: "ConfigMap", GVR: core("configmaps"), ShortName: "cm", EtcdPrefix: "/registry/configmaps/", Role: Other},
	{Name: "ControllerRevision", GVR: apps("controllerrevisions"), EtcdPrefix: "/registry/controllerrevisions/", Role: Child, Color: "light-dark(#7d6a55, #b9a58e)"},
	{Name: "CronJob", GVR: group("batch", "cronjobs"), ShortName: "cj", EtcdPrefix: "/registry/cronjobs/", Role: Workload, Controls: []string{"Job"}, Color: "light-dark(#4f6b8f, #9fbbe0)"},
	{Name: "DaemonSet", GVR: apps("daemonsets"), ShortName: "ds", EtcdPrefix: "/registry/daemonsets/", Role: Workload, Controls: []string{Pod, "ControllerRevision"}, Color: "light-dark(#a3541a, #e79a5c)"},
	{Name: Deployment, GVR: apps("deployments"), ShortName: "deploy", EtcdPrefix: "/registry/deployments/", Decoding: AsDeployment, Role: Workload, Controls: []string{ReplicaSet}, Color: "light-dark(#2563b0, #6ea8f5)"},
	{Name: "EndpointSlice", GVR: group("discovery.k8s.io", "endpointslices"), EtcdPrefix: "/registry/endpointslices/", Role: Routing, Color: "light-dark(#c2607a, #f2a8b8)"},
	{Name: Endpoints, GVR: core("endpoints"), ShortName: "ep", EtcdPrefix: "/registry/services/endpoints/", Decoding: AsEndpoints, Role: Routing, Color: "light-dark(#c2607a, #f2a8b8)"},
	{Name: "Event", GVR: core("events"), ShortName: "ev", EtcdPrefix: "/registry/events/", Role: Other},
	{Name: "Event", GVR: group("events.k8s.io", "events"), ShortName: "ev", EtcdPrefix: "/registry/events/", Role: Other},
	{Name: "Ingress", GVR: group("networking.k8s.io", "ingresses"), ShortName: "ing", EtcdPrefix: "/registry/ingress/", Role: Routing},
	{Name: "Job", GVR: group("batch", "jobs"), EtcdPrefix: "/registry/jobs/", Role: Workload, Controls: []string{Pod}, Color: "light-dark(#6b7300, #c3cc4a)"},
	{Name: "Lease", GVR: group("coordination.k8s.io", "leases"), EtcdPrefix: "/registry/leases/", Role: Other},
	{Name: "Namespace", GVR: core("namespaces"), ShortName: "ns", ClusterScoped: true, EtcdPrefix: "/registry/namespaces/", Role: Other},
	{Name: "Node", GVR: core("nodes"), ShortName: "no", ClusterScoped: true, EtcdPrefix: "/registry/minions/", Role: Other},
	{Name: Pod, GVR: core("pods"), ShortName: "po", EtcdPrefix: "/registry/pods/", Decoding: AsPod, Role: Child, Color: "light-dark(#2c7a3f, #74cf8a)"},
	{Name: ReplicaSet, GVR: apps("replicasets"), ShortName: "rs", EtcdPrefix: "/registry/replicasets/", Decoding: AsReplicaSet, Role: Workload, Controls: []string{Pod}, Color: "light-dark(#0f7f86, #4cc3c9)"},
	{Name: ReplicationController, GVR: core("replicationcontrollers"), ShortName: "rc", EtcdPrefix: "/registry/controllers/", Decoding: AsReplicationController, Role: Workload, Controls: []string{Pod}, Color: "light-dark(#5b4bb5, #a99cf2)"},
	{Name: Service, GVR: core("services"), ShortName: "svc", EtcdPrefix: "/registry/services/specs/", Decoding: AsService, Role: Routing, Controls: []string{"EndpointSlice"}, Color: "light-dark(#b0316b, #f088b8)"},
	{Name: "StatefulSet", GVR: apps("statefulsets"), ShortName: "sts", EtcdPrefix: "/registry/statefulsets/", Role: Workload, Controls: []string{Pod, "ControllerRevision"}, Color: "light-dark(#8a3fa0, #d08be6)"},
}

// core returns the GroupVersionResource of a resource in the core API group, version v1.
func core(plural string) schema.GroupVersionResource { return group("", plural) }

// apps returns the GroupVersionResource of a resource in the API group apps, version v1.
func apps(plural string) schema.GroupVersionResource { return group("apps", plural) }

// group returns the GroupVersionResource of a resource in the named API group, version v1.
func group(name, plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: name, Version: "v1", Resource: plural}
}
