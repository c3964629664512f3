package faults

// resourceLister is implemented by parameters that are part of a scenario.
type resourceLister interface {
	// Resources returns the resources that the scenario may name.
	Resources() []string
}

// Resource returns an error unless the parameter "resource" is a resource that the scenario
// may name. These include the custom resources that its workload creates.
func Resource(params Params, value string) error {
	known := Resources
	if scenario, ok := params.(resourceLister); ok {
		known = scenario.Resources()
	}
	return OneOf(params, "resource", value, known)
}
