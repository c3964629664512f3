// Package check decides from the records of a history whether the controllers under test (the
// subject) kept their guarantees.
//
// A history is the log of one run: requests, watch events, committed objects and faults. Each check
// tests one guarantee. The table All lists the checks and their guarantees. A check is a pure
// function of a history, so a verdict can be recomputed from a saved run.
//
// A general check applies to every controller. A check of a contract applies to the controllers
// that have certain traits in package kube. The model knows the fields of ReplicaSets,
// ReplicationControllers, Deployments and Services. The controllers of all other kinds are called
// generic controllers, and only the general checks apply to them.
//
// # What a check may conclude
//
// A controller acts on its informer caches. The caches receive events late, and each watch is late
// by a different amount. A write may therefore be correct although it contradicts the state in etcd
// at that time. A check fails only if none of the cached versions on which the controller may have
// acted justifies the write.
//
// The model (model.go) stores for each process of the subject:
//   - the objects in its informer caches, as lists and watch events delivered them (model_view.go)
//   - for each ReplicaSet and ReplicationController, the creates and deletes whose effect the
//     process has not observed yet (model_owner_state.go)
//   - for each Deployment, the versions of the Deployment and of its ReplicaSets on which the
//     process may have acted (model_rollout.go)
//   - for each Service, the recent versions of the Service and of its Endpoints
//     (model_publication.go)
//   - the metadata of all cached objects, if a generic controller is under test (model_metadata.go)
//
// If a history can be explained in several ways, a check accepts the explanation that favors the
// subject. A missed bug costs one finding. A false alarm makes users distrust all findings.
//
// The model makes two assumptions, so that very old versions justify no write. First, the subject
// acts on a delivered event within one second (the constant lag). Second, no sync is in progress if
// a process has no request in flight and has sent nothing for a time that depends on its rate limit
// (Settings.idleAfter). The model calls such a process idle (model_process.go).
//
// A check that cannot decide returns unknown, never pass. This happens after a gap record, which
// says that events are missing. It also happens if the end of the history is missing, or if the
// checker panicked.
//
// # Files
//
//   - check_<id>.go: one check, beginning with its row in All.
//   - model.go: the types that checkers read; model_*.go: how records change the values of these
//     types. Package objects decodes the API objects in the records.
//   - known.go: the table of known upstream issues; known_<slug>.go: how checks recognize one known
//     upstream issue.
//   - runner.go: the loop that runs the checkers; check.go: the table of all checks.
//
// The test convention_test.go checks the dependencies between these files. The model's files use no
// check and no known issue, and the file of a check uses no other check.
//
// The package knows the kinds and guarantees of the controllers that have a contract
// (controllers/CONTRACT.md). It reads everything about other controllers from their rows in package
// kube. It contacts no cluster, starts no process, and never reads the system clock.
package check
