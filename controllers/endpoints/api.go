package endpoints

import corev1 "k8s.io/api/core/v1"

// The v1 Endpoints API is deprecated in favor of EndpointSlices, but clusters still
// serve it. This package names the deprecated types only here.
type (
	endpoints = corev1.Endpoints       //nolint:staticcheck // the deprecated API is the subject
	subset    = corev1.EndpointSubset  //nolint:staticcheck // the deprecated API is the subject
	address   = corev1.EndpointAddress //nolint:staticcheck // the deprecated API is the subject
	port      = corev1.EndpointPort
)

const (
	// resource is the resource name of Endpoints, as package ownwrites uses it.
	resource = "endpoints"
	// EventSource is the source component of events and the value of managedByLabel.
	EventSource = "endpoint-controller"
	// managedByLabel names the controller that manages an Endpoints object.
	managedByLabel = "endpoints.kubernetes.io/managed-by"
	// truncatedValue is the value of the over-capacity annotation if addresses were
	// left out.
	truncatedValue = "truncated"
	// Capacity is the maximum number of addresses in one Endpoints object. An address
	// that is in several subsets counts once in each.
	Capacity = 1000
)

// Reasons of the events that this package emits.
const (
	FailedToCreateEndpoint = "FailedToCreateEndpoint"
	FailedToUpdateEndpoint = "FailedToUpdateEndpoint"
)
