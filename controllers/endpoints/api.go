package endpoints

import corev1 "k8s.io/api/core/v1"

// The v1 Endpoints API is deprecated in favour of EndpointSlices. Clusters serve
// it all the same, and keeping it filled is what this package is for. It names
// the types here, once.
type (
	endpoints = corev1.Endpoints       //nolint:staticcheck // the deprecated API is the subject
	subset    = corev1.EndpointSubset  //nolint:staticcheck // the deprecated API is the subject
	address   = corev1.EndpointAddress //nolint:staticcheck // the deprecated API is the subject
	port      = corev1.EndpointPort
)

const (
	// resource is the name under which writes of Endpoints are remembered.
	resource = "endpoints"
	// EventSource is the component that events come from, and the value of
	// managedByLabel.
	EventSource = "endpoint-controller"
	// managedByLabel says who keeps an Endpoints.
	managedByLabel = "endpoints.kubernetes.io/managed-by"
	// truncatedValue is what the over-capacity annotation says when addresses
	// were left out.
	truncatedValue = "truncated"
	// Capacity is the most addresses that one Endpoints holds. One that serves
	// several sets of ports counts once for each.
	Capacity = 1000
)

// Reasons of the events that this package emits.
const (
	FailedToCreateEndpoint = "FailedToCreateEndpoint"
	FailedToUpdateEndpoint = "FailedToUpdateEndpoint"
)
