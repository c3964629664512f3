package scenario

import "slices"

// Kind is the kind of an object of the workload.
type Kind string

// The kinds.
const (
	ReplicaSet            Kind = "ReplicaSet"
	ReplicationController Kind = "ReplicationController"
	Deployment            Kind = "Deployment"
	Pod                   Kind = "Pod"
	Service               Kind = "Service"
	Endpoints             Kind = "Endpoints"
)

// kindRow describes how a workload can use the objects of a kind. The supported operations
// are in the table of operations.
type kindRow struct {
	kind Kind
	// fields are the fields of a create of the kind, besides kind and name.
	fields []string
	untils []Until
}

var kinds = []kindRow{
	{ReplicaSet, ownerFields, ownerUntils},
	{ReplicationController, ownerFields, ownerUntils},
	{
		Deployment,
		append(slices.Clip(ownerFields), "version", "strategy", "maxSurge", "maxUnavailable",
			"revisionHistoryLimit", "progressDeadlineSeconds", "paused"),
		[]Until{Scaled, Ready, Available, Complete, Gone},
	},
	{Pod, []string{"count", "labels", "controller"}, []Until{Ready, Gone}},
	{
		Service,
		[]string{"labels", "selector", "ports", "headless", "publishNotReadyAddresses", "externalName"},
		[]Until{Served, Gone},
	},
	{Endpoints, []string{"labels", "leader"}, []Until{Gone}},
}

var (
	ownerFields = []string{"replicas", "labels", "selector", "minReadySeconds"}
	ownerUntils = []Until{Scaled, Ready, Available, Gone}

	allKinds = kindsWith("labels")
	owners   = kindsWith("replicas") // kinds with replicas, a selector and a pod template
)

// kindsWith returns the kinds whose create has the field.
func kindsWith(field string) []Kind {
	var with []Kind
	for _, row := range kinds {
		if slices.Contains(row.fields, field) {
			with = append(with, row.kind)
		}
	}
	return with
}

// row returns the row of the kind in the table, or an empty row.
func (k Kind) row() kindRow {
	for _, row := range kinds {
		if row.kind == k {
			return row
		}
	}
	return kindRow{}
}

// owner reports whether objects of the kind have replicas.
func (k Kind) owner() bool { return slices.Contains(owners, k) }

// makesPods reports whether a create of the kind defines the labels of pods. If so, the
// field labels of the create sets the labels of the pods, not those of the object.
func (k Kind) makesPods() bool { return k.owner() || k == Pod }
