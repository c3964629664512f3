package faults

// Resource returns an error unless the parameter "resource" is a resource that the scenario
// may name. These include the custom resources that its workload creates.
func Resource(params Params, value string) error {
	return OneOf(params, "resource", value, params.Resources())
}
