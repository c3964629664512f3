package scenario

// Verbs is the list of API verbs that a scenario may name.
var Verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// Resources is the list of resources that a scenario may name: those that workload
// controllers read and write. Any other name is an error, because a fault with a misspelled
// resource would never fire. Add the resources of other subjects here.
var Resources = []string{
	"configmaps",
	"controllerrevisions.apps",
	"daemonsets.apps",
	"deployments.apps",
	"endpoints",
	"endpointslices.discovery.k8s.io",
	"events",
	"events.events.k8s.io",
	"jobs.batch",
	"leases.coordination.k8s.io",
	"namespaces",
	"nodes",
	"pods",
	"replicasets.apps",
	"replicationcontrollers",
	"services",
	"statefulsets.apps",
}
