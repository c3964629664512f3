package workload

import corev1 "k8s.io/api/core/v1"

// EndpointSlices have succeeded Endpoints, but it is Endpoints that users make here.
type (
	endpoints       = corev1.Endpoints       //nolint:staticcheck // the deprecated API is the subject
	endpointsList   = corev1.EndpointsList   //nolint:staticcheck // the deprecated API is the subject
	endpointsSubset = corev1.EndpointSubset  //nolint:staticcheck // the deprecated API is the subject
	endpointAddress = corev1.EndpointAddress //nolint:staticcheck // the deprecated API is the subject
)
