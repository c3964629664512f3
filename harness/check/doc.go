// Package check decides from the records of a history whether the subject kept its
// guarantees.
//
// Each check tests one guarantee. The table All lists the checks and their guarantees. A
// check is a pure function of a history, so a verdict can be recomputed from a saved run.
//
// A general check applies to every controller. A check of a contract applies to the
// controllers with certain traits in package kube. A generic controller is one whose kind
// the model does not know in detail; only the general checks apply to it.
//
// # What a check may conclude
//
// A controller acts on its caches, which receive events late and in separate streams. A
// write may therefore be correct although it contradicts the state in etcd at that time. A
// check fails a write only if no cached version that the controller may have acted on
// justifies it.
//
// The model (model.go) holds for each process of the subject:
//   - the objects in its caches, from delivered lists and events (model_view.go)
//   - for each owner, the calls whose effect it has not observed (model_owner_state.go)
//   - for each Deployment, the versions that a decision may date from (model_rollout.go)
//   - for each Service, its recent versions and those of its Endpoints (model_publication.go)
//   - the metadata of all cached objects, if a generic controller is under test
//     (model_metadata.go)
//
// If a history can be explained in several ways, a check accepts the explanation that
// favors the subject. A missed bug costs one finding. A false alarm makes users distrust
// all findings.
//
// Two rules limit how old a version may be that justifies a write. The subject acts on a
// delivered event within the constant lag. A process that has sent nothing for a while, and
// has no call in flight, has no sync in progress (model_process.go).
//
// A check that cannot decide returns unknown, never pass. This happens after a gap in the
// records, if the end of the history is missing, and if the checker panicked.
//
// # Files
//
//   - check_<id>.go: one check, beginning with its row in All.
//   - model.go: the types of the state that checkers read; model_*.go: how that
//     state follows from the records. Package objects decodes the objects.
//   - known.go: the known upstream issues; known_<slug>.go: how one of them is
//     recognized.
//   - runner.go: the loop that runs the checkers; check.go: the table of all.
//
// The test convention_test.go checks the dependencies between these files. The model uses
// no check and no known issue, and no check uses another check.
//
// The package knows the kinds and guarantees of the controllers with a contract. It takes
// everything about other controllers from their rows in package kube. It does not depend on
// clusters, clients or processes, and has no clock.
package check
