// Package objects decodes the recorded objects of a run's history into typed, immutable Go
// values.
//
// For each kind, one function decodes its objects. The values contain the fields that checks,
// triggers, coverage, comparisons and the timeline use:
//
//   - Pod: labels, controllerRef, phase, readiness and the fields that decide the order of
//     scale-down. PodAddress contains the addresses of a pod.
//   - Owner: a ReplicaSet or a ReplicationController, with its status. In this package, the word
//     owner means one of these two.
//   - Deployment: spec, status and conditions.
//   - Service and Endpoints.
//   - Template: the pod template of an owner or a Deployment.
//   - Generic: the fields that objects of many kinds have.
//
// A Decoder caches decoded values by the object's UID and resourceVersion.
package objects
