package check

// availability is the condition Available of a Deployment of which enough
// replicas are available, or not.
func availability(enough bool) deploymentCondition {
	if enough {
		return deploymentCondition{"Available", "True", "MinimumReplicasAvailable"}
	}
	return deploymentCondition{"Available", "False", "MinimumReplicasUnavailable"}
}
