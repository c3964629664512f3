// Package objects decodes the objects in a history into typed, immutable values.
//
// Each kind is decoded in one place. The values contain the fields that checks, triggers,
// coverage, comparisons and the timeline use:
//
//   - Pod: labels, controllerRef, phase, readiness and the fields that decide the order of
//     scale-down. PodAddress has its addresses.
//   - Owner: a ReplicaSet or a ReplicationController, with its status.
//   - Deployment: spec, status and conditions.
//   - Service and Endpoints.
//   - Template: the pod template of an owner or a Deployment.
//
// A Decoder caches decoded versions by UID and resourceVersion.
package objects
