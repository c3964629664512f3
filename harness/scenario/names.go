package scenario

// Verbs are the verbs of the API that a scenario may name.
var Verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// Resources are the resources that a scenario may name: those that workload
// controllers read and write. A subject that uses others needs them added here;
// a list is kept so that a misspelt name is an error and no fault that never
// fires.
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
